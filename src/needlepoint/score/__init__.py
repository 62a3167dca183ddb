"""What a reply is worth: rules that decide an outcome and a value, with the reason."""
