package experiments

// Text returns the text of the experiment at path, or of the shipped one of that
// name, the file's name for messages and the folder that files it names are relative
// to: what Parse takes.
func Text(path string) (name, dir, text string, err error) {
	src, err := open(path)
	return src.file, src.dir, src.text, err
}
