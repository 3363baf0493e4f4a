-- What a yes is bound to besides the bytes of the action: the files that it names, as they were when it was asked.
ALTER TABLE approvals ADD COLUMN named TEXT;
