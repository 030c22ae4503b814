//! One entry of a round as the request that asks a legacy client. Rules: A1.12-A1.14, A6.7, A8, B2.2, B4.3; vectors D84, D90-D92.
