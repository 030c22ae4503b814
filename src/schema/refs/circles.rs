//! Circles of references that take nothing of the value, and how many schemas may apply to one value.
//!
//! Owns the graph of schemas that apply to the same value as the one they stand in or are referred to from: its circles, and for
//! what has none the number of schemas that one leads to, however often each, and the longest way. All in time linear in the
//! schemas and references, without recursion. Circles through parts of the value are legal recursion and are not in the graph.
//! Vector D68; the specification's "Composition-Keyword Resource Use".

use super::mark::{Dynamic, Lead};
use super::tree::Node;
use super::{Walk, uri};
use crate::schema::Kind;
use std::collections::{HashMap, HashSet};

type Edge = (u32, u32);

/// The graph, by the places of the edges' ends.
struct Graph {
    /// Where the edges of a place begin in `to`; one more than there are places.
    first: Vec<u32>,
    to: Vec<u32>,
    /// Places from here on are no schemas but choices, of which one applies.
    choices: u32,
}

/// What was made out of each place.
struct Ways {
    /// Places that are on one circle have one number; what is on none has its own.
    circle: Vec<u32>,
    /// Schemas that apply where this one does, itself included.
    weight: Vec<u64>,
    /// The longest way, in schemas.
    length: Vec<u32>,
}

/// A place that was entered and not left.
struct Visit {
    place: u32,
    edge: u32,
}

const UNSEEN: u32 = u32::MAX;

impl Walk<'_> {
    /// Finds circles, and schemas that apply too many others.
    pub(super) fn circles(&mut self) {
        if self.schemas.leads.is_empty() {
            // Without references there are no circles, and each schema was counted.
            return;
        }
        let (graph, leads) = self.graph();
        let ways = graph.ways();
        let mut told = HashSet::new();
        for ((from, to), keyword) in leads {
            let circle = ways.circle[from as usize];
            if circle == ways.circle[to as usize] && self.is_judged(from) && told.insert(circle) {
                let word = self.tree.string(keyword).unwrap_or_default().into_owned();
                self.find(keyword, Kind::Loop, &word);
            }
        }
        if !told.is_empty() {
            return;
        }
        let bounds = self.rules.bounds;
        let schemas = ..graph.choices as usize;
        let heavy = ways.weight[schemas].iter().position(|weight| *weight > bounds.subschemas as u64);
        let long = ways.length[schemas].iter().position(|length| *length as usize > bounds.depth);
        for (found, kind) in [(heavy, Kind::Subschemas), (long, Kind::Depth)] {
            if let Some(node) = found {
                self.find(node as Node, kind, "references followed");
            }
        }
    }

    /// The graph; and what each reference adds to it, with the keyword.
    fn graph(&self) -> (Graph, Vec<(Edge, Node)>) {
        let choices = self.tree.len();
        let mut places = choices;
        let mut edges = self.schemas.same.clone();
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut leads = Vec::new();
        for lead in &self.schemas.leads {
            let to = match self.stand_ins(lead) {
                None => lead.target,
                Some((name, anchors)) => *names.entry(name).or_insert_with(|| {
                    places += 1;
                    edges.extend(anchors.iter().map(|anchor| (places - 1, *anchor)));
                    places - 1
                }),
            };
            edges.push((lead.schema, to));
            leads.push(((lead.schema, to), lead.keyword));
        }
        (Graph::new(places, choices, &edges), leads)
    }

    /// The anchors of which one may take the place of what a dynamic reference leads to, under their name; `None` if it leads
    /// to none of them.
    fn stand_ins(&self, lead: &Lead) -> Option<(String, &[Node])> {
        let (name, anchors) = match lead.dynamic {
            Dynamic::No => return None,
            Dynamic::Recursive => (String::new(), &self.schemas.recursive),
            Dynamic::Anchor => {
                let reference = self.tree.string(lead.keyword)?;
                let name = uri::decode(uri::split(&reference).1)?;
                (name.clone().into_owned(), self.schemas.dynamic.get(&*name)?)
            }
        };
        // In the order of the texts.
        anchors.binary_search(&lead.target).is_ok().then_some((name, anchors))
    }
}

impl Graph {
    fn new(places: u32, choices: u32, edges: &[Edge]) -> Self {
        let mut first = vec![0; places as usize + 1];
        for (from, _) in edges {
            first[*from as usize + 1] += 1;
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut next = first.clone();
        let mut to = vec![0; edges.len()];
        for (from, end) in edges {
            let at = &mut next[*from as usize];
            to[*at as usize] = *end;
            *at += 1;
        }
        Self { first, to, choices }
    }

    fn edges(&self, place: u32) -> &[u32] {
        let (from, to) = (self.first[place as usize], self.first[place as usize + 1]);
        &self.to[from as usize..to as usize]
    }

    /// Tarjan's strongly connected components. A place is settled after all that it leads to, so that its ways are known then.
    fn ways(&self) -> Ways {
        let places = self.first.len() - 1;
        let mut ways =
            Ways { circle: vec![UNSEEN; places], weight: vec![0; places], length: vec![0; places] };
        let (mut order, mut lowest) = (vec![UNSEEN; places], vec![0; places]);
        let mut entered = 0;
        let (mut visits, mut open): (Vec<Visit>, Vec<u32>) = (Vec::new(), Vec::new());
        for start in 0..places as u32 {
            // What has no edges and is led to by none is not worth a visit.
            if order[start as usize] != UNSEEN || self.edges(start).is_empty() {
                continue;
            }
            visits.push(Visit { place: start, edge: 0 });
            while let Some(Visit { place, edge }) = visits.last_mut() {
                let at = *place as usize;
                if *edge == 0 && order[at] == UNSEEN {
                    order[at] = entered;
                    lowest[at] = entered;
                    entered += 1;
                    open.push(*place);
                }
                if let Some(&to) = self.edges(*place).get(*edge as usize) {
                    *edge += 1;
                    if order[to as usize] == UNSEEN {
                        visits.push(Visit { place: to, edge: 0 });
                    } else if ways.circle[to as usize] == UNSEEN {
                        lowest[at] = lowest[at].min(order[to as usize]);
                    }
                    continue;
                }
                visits.pop();
                if let Some(outer) = visits.last() {
                    let outer = outer.place as usize;
                    lowest[outer] = lowest[outer].min(lowest[at]);
                }
                if lowest[at] == order[at] {
                    self.settle(at as u32, &mut open, &mut ways);
                }
            }
        }
        ways
    }

    /// Takes the circle of `place`, or `place` alone, off the open places.
    fn settle(&self, place: u32, open: &mut Vec<u32>, ways: &mut Ways) {
        while let Some(member) = open.pop() {
            ways.circle[member as usize] = place;
            if member == place {
                break;
            }
        }
        let is_choice = place >= self.choices;
        let (mut weight, mut length) = (0_u64, 0);
        for to in self.edges(place) {
            let other = ways.weight[*to as usize];
            weight = if is_choice { weight.max(other) } else { weight.saturating_add(other) };
            length = length.max(ways.length[*to as usize]);
        }
        let own = u32::from(!is_choice);
        ways.weight[place as usize] = weight.saturating_add(own.into());
        ways.length[place as usize] = length.saturating_add(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_weights_and_lengths_of_a_small_graph() {
        // 0 leads to 1 and 2, both to 3, which leads to itself by 4; 5 is a choice between 1 and 6; 6 leads nowhere.
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 3), (7, 1), (7, 6), (5, 7)];
        let ways = Graph::new(8, 7, &edges).ways();
        assert_eq!(ways.circle[3], ways.circle[4]);
        let mut alone = vec![ways.circle[0], ways.circle[1], ways.circle[2], ways.circle[3], ways.circle[7]];
        alone.sort_unstable();
        alone.dedup();
        assert_eq!(alone.len(), 5);
        // Without the circle: 3 applies itself and 4.
        let ways =
            Graph::new(8, 7, &edges.into_iter().filter(|edge| *edge != (4, 3)).collect::<Vec<_>>()).ways();
        assert_eq!(ways.weight, [7, 3, 3, 2, 1, 4, 1, 3]);
        assert_eq!(ways.length, [4, 3, 3, 2, 1, 4, 1, 3]);
    }

    #[test]
    fn d68_a_long_way_is_no_recursion_and_a_dense_one_saturates() {
        let places = 1_000_000;
        let edges: Vec<_> = (1..places).flat_map(|place| [(place - 1, place), (place - 1, place)]).collect();
        let ways = Graph::new(places, places, &edges).ways();
        assert_eq!(ways.length[0], places);
        assert_eq!(ways.weight[0], u64::MAX);
        assert_eq!(ways.weight[places as usize - 3], 7);
    }
}
