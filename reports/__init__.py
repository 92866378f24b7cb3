"""From records to something people read. Knows no framework by name: what there is comes from the records."""
