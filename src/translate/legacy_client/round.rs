//! What an `input_required` result asks. Rules: B2.3, B2.4; vectors D84-D87.
