"""From records to pages and texts for people. Knows no framework by name: all names come from the records."""
