"""One file per verb: settings in, work done through the API, results shown."""
