module tidegate.dev/tidegate

go 1.26
