import { option, requireOptions, type OptionCheck, type OptionFault } from '@tallystick/core/kit'
import type { ApprovalRule, ApprovalRules, InputCondition, RuledCall, RuleExample } from './rules.ts'

const { fields, filledText, listOf, maybe, oneOf, recordOf, trueOrFalse, valueThat } = option

const maxRules = 1_000
const maxPatternLength = 200
/** Conditions within conditions. */
const maxDepth = 10

const decision = oneOf(['allow', 'ask', 'deny'])
const effect = oneOf(['read', 'write'])

const isPattern = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && value.length <= maxPatternLength

const patterns: OptionCheck = valueThat(
  `a text of at most ${maxPatternLength} characters in which * stands for any text, or a list of such texts`,
  (value) => isPattern(value) || (Array.isArray(value) && value.length > 0 && value.every(isPattern)),
)

const isScalar = (value: unknown): boolean =>
  value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)

const scalar: OptionCheck = valueThat('a text, a finite number, true, false or null', isScalar)

const number: OptionCheck = valueThat('a finite number', Number.isFinite)

const path: OptionCheck = valueThat(
  'the path of a field, such as amount or to.country',
  (value) => typeof value === 'string' && value.split('.').every((name) => name !== ''),
)

function condition(value: unknown, at: string): OptionFault | undefined {
  return conditionWithin(maxDepth)(value, at)
}

function conditionWithin(depth: number): OptionCheck {
  return (value, at) => {
    if (isScalar(value)) return undefined
    if (depth === 0)
      return { path: at, what: `holds conditions within conditions, more than ${maxDepth} deep` }
    const inner = maybe((each, place) => conditionWithin(depth - 1)(each, place))
    const fault = fields<Exclude<InputCondition, string | number | boolean | null>>(
      {
        is: maybe(scalar),
        oneOf: maybe(listOf(scalar)),
        like: maybe(patterns),
        above: maybe(number),
        atLeast: maybe(number),
        below: maybe(number),
        atMost: maybe(number),
        present: maybe(trueOrFalse),
        not: inner,
        some: inner,
        every: inner,
      },
      {
        equals: 'is',
        in: 'oneOf',
        matches: 'like',
        glob: 'like',
        exists: 'present',
        min: 'atLeast',
        max: 'atMost',
      },
    )(value, at)
    if (fault) return fault
    const isEmpty = Object.values(value as object).every((each) => each === undefined)
    return isEmpty
      ? { path: at, what: 'states nothing; give a value, or one of is, oneOf, like …' }
      : undefined
  }
}

function input(value: unknown, at: string): OptionFault | undefined {
  const fault = recordOf(condition)(value, at)
  if (fault) return fault
  for (const name of Object.keys(value as object)) {
    if (path(name, at))
      return {
        path: at,
        what: `holds the path '${name.slice(0, 40)}'; expected names with dots between them`,
      }
  }
  return undefined
}

const rule: OptionCheck = fields<ApprovalRule>(
  {
    name: maybe(filledText),
    tool: maybe(patterns),
    agent: maybe(patterns),
    effect: maybe(effect),
    input: maybe(input),
    decision,
    why: maybe(filledText),
  },
  { verdict: 'decision', action: 'decision', reason: 'why', message: 'why', args: 'input' },
)

const call: OptionCheck = fields<RuledCall>({
  tool: filledText,
  effect: maybe(effect),
  agent: maybe(filledText),
  input: maybe(option.anyObject),
})

const rules: OptionCheck = fields<ApprovalRules>(
  {
    version: valueThat('1, the version of this format', (value) => value === 1),
    rules: (value, at) =>
      listOf(rule)(value, at) ??
      ((value as readonly unknown[]).length > maxRules
        ? { path: at, what: `holds more than ${maxRules} rules` }
        : undefined),
    otherwise: maybe(decision),
    examples: maybe(listOf(fields<RuleExample>({ call, decision }))),
  },
  { default: 'otherwise', fallback: 'otherwise', tests: 'examples' },
)

/** Throws a `ConfigurationError` that names the place where these are no rules; `subject` says what is looked at. */
export function requireRules(given: unknown, subject: string): asserts given is ApprovalRules {
  requireOptions(subject, rules, given)
}
