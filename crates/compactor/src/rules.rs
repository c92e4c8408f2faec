//! The masking rules as data: their names, what they fold, and their order. What a rule matches
//! is decided in the module `candidates`.

use std::fmt;

/// A masking rule. The order is the order in which a goal uses them: cheapest information first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The same output came again later.
    RepeatedOutput,
    /// The file was read, written, edited or deleted again later.
    SupersededRead,
    /// The output holds base64 text.
    Base64,
    /// A listing of files.
    Listing,
    /// A search.
    Search,
    /// A command that ended well.
    PassingRun,
    /// The output holds an image.
    Image,
    /// A failure that was followed by a success of the same kind.
    FixedError,
    /// The output is over the size limit.
    LargeOutput,
    /// Any other output; only in aggressive masking.
    AnyOutput,
}

impl Rule {
    /// Every rule, cheapest information first.
    pub const ALL: [Rule; 10] = [
        Rule::RepeatedOutput,
        Rule::SupersededRead,
        Rule::Base64,
        Rule::Listing,
        Rule::Search,
        Rule::PassingRun,
        Rule::Image,
        Rule::FixedError,
        Rule::LargeOutput,
        Rule::AnyOutput,
    ];

    /// The name that the command line, plans and docs use.
    pub fn name(self) -> &'static str {
        match self {
            Rule::RepeatedOutput => "repeated-output",
            Rule::SupersededRead => "superseded-read",
            Rule::Base64 => "base64",
            Rule::Listing => "listing",
            Rule::Search => "search",
            Rule::PassingRun => "passing-run",
            Rule::Image => "image",
            Rule::FixedError => "fixed-error",
            Rule::LargeOutput => "large-output",
            Rule::AnyOutput => "any-output",
        }
    }

    /// One sentence for people: what the rule folds.
    pub fn describe(self) -> &'static str {
        match self {
            Rule::RepeatedOutput => "an output that came again, word for word, later",
            Rule::SupersededRead => {
                "a read of a file that was read, written, edited or deleted again later"
            }
            Rule::Base64 => "an output that holds base64 text",
            Rule::Listing => "a listing of files or folders",
            Rule::Search => "the hits of a search",
            Rule::PassingRun => "the output of a command that ended well",
            Rule::Image => "an output that holds an image",
            Rule::FixedError => "a failure that the same command, file or tool got over later",
            Rule::LargeOutput => "an output over the size limit",
            Rule::AnyOutput => "any other older output (only with --aggressive)",
        }
    }

    /// The rule of this name.
    pub fn by_name(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.name() == name)
    }

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which rules are on. By default all but [`Rule::AnyOutput`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleSet(u16);

impl Default for RuleSet {
    fn default() -> RuleSet {
        Rule::ALL
            .into_iter()
            .filter(|rule| *rule != Rule::AnyOutput)
            .fold(RuleSet::none(), RuleSet::with)
    }
}

impl RuleSet {
    /// No rule.
    pub fn none() -> RuleSet {
        RuleSet(0)
    }

    /// This set and `rule`.
    #[must_use]
    pub fn with(self, rule: Rule) -> RuleSet {
        RuleSet(self.0 | rule.bit())
    }

    /// This set without `rule`.
    #[must_use]
    pub fn without(self, rule: Rule) -> RuleSet {
        RuleSet(self.0 & !rule.bit())
    }

    /// Whether `rule` is on.
    pub fn has(self, rule: Rule) -> bool {
        self.0 & rule.bit() != 0
    }

    /// The rules that are on, cheapest information first.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.into_iter().filter(move |rule| self.has(*rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_lead_back() {
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(Rule::by_name(rule.name()), Some(rule));
            assert_eq!(
                rule as usize, place,
                "the order of the list is the order of the type"
            );
            assert!(!rule.describe().is_empty());
        }
        assert_eq!(Rule::by_name("nonsense"), None);
    }

    #[test]
    fn a_set_switches_each_rule_by_itself() {
        for rule in Rule::ALL {
            let off = RuleSet::default().without(rule);
            assert!(!off.has(rule));
            assert!(off.with(rule).has(rule));
            let others = |set: RuleSet| set.iter().filter(|r| *r != rule).collect::<Vec<_>>();
            assert_eq!(others(off), others(off.with(rule)));
        }
        assert!(!RuleSet::default().has(Rule::AnyOutput));
        assert_eq!(RuleSet::default().iter().count(), Rule::ALL.len() - 1);
    }
}
