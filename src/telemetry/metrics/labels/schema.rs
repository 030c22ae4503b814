//! The words about the schema guard, for the families of `schema`.

words! {
    /// Where the verdict on a list of tools came from.
    ListVerdict {
        /// Its tools were judged.
        Judged => "judged",
        /// It has the bytes of one that was judged before.
        Known => "known",
    }
}

words! {
    /// What a value of a call is.
    CallValue {
        Arguments => "arguments",
        /// `structuredContent`
        Result => "result",
    }
}

words! {
    /// What came of checking such a value against its schema.
    ValueCheck {
        Fits => "fits",
        /// It does not fit, and was passed on.
        Warned => "warned",
        /// It does not fit, and was not passed on.
        Refused => "refused",
        /// It could not be told whether it fits: the schema cannot be compiled, the value cannot be read, or it took too long.
        Unchecked => "unchecked",
        /// No list has named the tool so far.
        UnknownTool => "unknown_tool",
    }
}
