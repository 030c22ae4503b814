//! A3, B7.4: lists that come in pages.

use crate::stage::{Cell, PAIRS, REFUSED, Stage, bad, good};

#[tokio::test(start_paused = true)]
async fn each_page_is_judged_and_all_are_remembered() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), "", "").await;
        stage.tools.pages(&[
            &format!("{},{}", bad("b0"), good("g0")),
            &format!("{},{}", good("g1"), bad("b1")),
            &bad("b2"),
        ]);
        let first = stage.listed().await;
        assert_eq!(first.names(), ["g0"], "{pair:?}");
        let second = stage.page(first.result()["nextCursor"].as_str()).await;
        assert_eq!(second.names(), ["g1"], "{pair:?}");
        let third = stage.page(second.result()["nextCursor"].as_str()).await;
        assert_eq!(third.names(), [] as [&str; 0], "{pair:?}: a page may be empty");
        assert!(third.result().get("nextCursor").is_none(), "{pair:?}");
        for name in ["b0", "b1", "b2"] {
            stage.refused(name).await;
        }
        // The first page alone says nothing of the others.
        stage.listed().await;
        for name in ["b0", "b1", "b2"] {
            stage.refused(name).await;
        }
        stage.passes("g0", "{}").await;
        stage.passes("g1", "{}").await;
        assert_eq!(stage.metric(REFUSED, &[]), 6.0, "{pair:?}");
        assert_eq!(stage.found("external_ref"), 3.0, "{pair:?}: each once");
    }
}

/// One that is mended on its page is mended, though nobody has read the others again.
#[tokio::test(start_paused = true)]
async fn a_page_mends_its_own() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), "", "").await;
        stage.tools.pages(&[&bad("b0"), &bad("b1")]);
        let first = stage.listed().await;
        stage.page(first.result()["nextCursor"].as_str()).await;
        stage.tools.pages(&[&bad("b0"), &good("b1")]);
        assert_eq!(stage.page(Some("1")).await.names(), ["b1"], "{pair:?}");
        stage.passes("b1", "{}").await;
        stage.refused("b0").await;
    }
}
