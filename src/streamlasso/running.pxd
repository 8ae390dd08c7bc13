# Compiled; nothing here is called from C.
