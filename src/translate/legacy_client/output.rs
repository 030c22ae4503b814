//! Output schemas whose root is no object. Rule: B6; vectors D57-D62.
