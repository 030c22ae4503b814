//! The words about legacy clients before a modern server, for the families of `bridge`.

words! {
    /// How a legacy client's session before a modern server came to be known.
    SessionBegan {
        /// By `initialize`.
        Begun => "begun",
        /// From its id, which another process has issued, or this one before a restart.
        Rebuilt => "rebuilt",
    }
}

words! {
    /// What ended such a session.
    SessionEnd {
        Delete => "delete",
        /// `session.idle`
        Idle => "idle",
        /// It made room (`session.max`).
        Evicted => "evicted",
        /// The process ended.
        Drain => "drain",
    }
}

words! {
    /// The streams of such a session.
    ClientStream {
        /// Opened by GET.
        Own => "own",
        /// Of a call, also when it is taken up again.
        Call => "call",
    }
}

words! {
    /// What a client got that came with `Last-Event-ID`.
    Resumption {
        Replayed => "replayed",
        /// Nothing: all of that stream has reached it.
        Over => "over",
        /// Nothing: the stream is not known, or not any more.
        Unknown => "unknown",
    }
}

words! {
    /// A message that is not kept for a client that is away.
    ReplayDropped {
        /// A notification.
        Notice => "notice",
        Question => "question",
        Answer => "answer",
    }
}

words! {
    /// What a server made of another token for a session of the same subject.
    TokenRefresh {
        /// It takes this one and refuses an altered one.
        Vouched => "vouched",
        Refused => "refused",
        /// It takes altered ones, too, or could not be asked.
        Unsure => "unsure",
    }
}

words! {
    /// What became of a modern server's question to a legacy client.
    ClientAnswer {
        /// Answered, an elicitation by accept.
        Answered => "answered",
        /// An elicitation that was declined or cancelled by the user.
        Declined => "declined",
        /// The client answered with an error.
        Error => "error",
        /// The answer does not fit the question.
        Unfit => "unfit",
        /// `timeouts.answer`
        Timeout => "timeout",
        /// The call ended before.
        Cancelled => "cancelled",
    }
}

words! {
    /// What has changed.
    NoticeKind {
        Tools => "tools",
        Prompts => "prompts",
        Resources => "resources",
        /// One resource.
        Updated => "updated",
    }
}

words! {
    /// What became of a change, towards one session.
    Noticed {
        /// It went to the client's stream.
        Told => "told",
        /// No stream is open: it waits for one.
        Kept => "kept",
        /// An equal one waits.
        Merged => "merged",
        /// It may have happened while nobody was subscribed, and is told to be sure.
        Synthesised => "synthesised",
    }
}

words! {
    /// Why tools were listed.
    CatalogFetch {
        /// The tool was not known.
        Unknown => "unknown",
        /// The server refused the headers of a call.
        Mismatch => "mismatch",
    }
}

words! {
    /// What happened to a list.
    ListCache {
        Hit => "hit",
        Miss => "miss",
        Stored => "stored",
        /// Before its time: it changed, or made room.
        Dropped => "dropped",
    }
}

words! {
    /// Whether a modern server speaks to legacy clients itself.
    LikePair {
        LegacyToo => "legacy-too",
        ModernOnly => "modern-only",
    }
}
