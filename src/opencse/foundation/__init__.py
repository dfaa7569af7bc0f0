"""What every floor stands on: errors, files, tables, progress, workers."""
