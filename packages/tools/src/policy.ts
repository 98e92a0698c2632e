import { readFileSync, statSync } from 'node:fs'
import { type ApprovalPolicy, ConfigurationError } from '@tallystick/core'
import {
  option,
  type Schema,
  type Fault,
  requireOptions,
  formatErrorSentence,
} from '@tallystick/core/internal'
import { type Approvers, approvers, type ToolEffect } from '@tallystick/core/vocabulary'
import { readJsonWithComments } from './json-with-comments.ts'

/** The decision about a call: it runs as its tool decides, it needs an approval, or it is denied. */
export type RuleDecision = 'allow' | 'ask' | 'deny'

/** A value that can be compared: of a field of an input. */
export type Scalar = string | number | boolean | null

/**
 * A condition on a field of an input. A scalar has to be equal. Otherwise every given condition has to hold. If the
 * field is missing, or has a type that cannot be compared, the condition is undecided.
 */
export type InputCondition =
  | Scalar
  | {
      /** Exactly this. */
      readonly is?: Scalar | undefined
      /** Exactly one of these. */
      readonly oneOf?: readonly Scalar[] | undefined
      /** A text that fits one of the patterns, in which `*` stands for any text, also an empty one. */
      readonly like?: string | readonly string[] | undefined
      /** A number above this. */
      readonly above?: number | undefined
      /** A number of at least this. */
      readonly atLeast?: number | undefined
      /** A number below this. */
      readonly below?: number | undefined
      /** A number of at most this. */
      readonly atMost?: number | undefined
      /** Tests presence; `null` is present. */
      readonly present?: boolean | undefined
      /** The opposite of a condition. */
      readonly not?: InputCondition | undefined
      /** A list with at least one item that fits. */
      readonly some?: InputCondition | undefined
      /** A list in which every item fits. */
      readonly every?: InputCondition | undefined
    }

/** Which calls a rule applies to, and its decision. All given filters must match. */
export interface ApprovalRule {
  /** The name of the rule, for records and output. */
  readonly name?: string | undefined
  /** Names of tools, or patterns of names, in which `*` stands for any text. */
  readonly tool?: string | readonly string[] | undefined
  /** Names of agents, or patterns of names. */
  readonly agent?: string | readonly string[] | undefined
  readonly effect?: ToolEffect | undefined
  /** Conditions on fields of the input, by their paths: `amount`, `to.country`, `lines.0.price`. */
  readonly input?: { readonly [path: string]: InputCondition } | undefined
  readonly decision: RuleDecision
  /** Who may approve, of a rule that asks: how many different people, and which roles they need. */
  readonly approvers?: Approvers | undefined
  /** A reason for the approver, or for the model whose call is denied. */
  readonly why?: string | undefined
}

/** A call, and the decision that the rules have to make about it. */
export interface RuleExample {
  readonly call: RuledCall
  readonly decision: RuleDecision
}

/** A call as rules see it. */
export interface RuledCall {
  readonly tool: string
  readonly effect?: ToolEffect | undefined
  readonly agent?: string | undefined
  readonly input?: { readonly [name: string]: unknown } | undefined
}

/** An approval policy as data: the first rule that fits decides. */
export interface ApprovalRules {
  /** The version of this format. */
  readonly version: 1
  readonly rules: readonly ApprovalRule[]
  /** The decision about a call that no rule matches. Default: `ask`. */
  readonly otherwise?: RuleDecision | undefined
  /** Calls with their expected decisions, which `checkExamples` tries. */
  readonly examples?: readonly RuleExample[] | undefined
}

/**
 * Returns an approval policy from rules: give it to `defineAgent` or `createRuntime` as `approval`. As every policy it
 * may ask for more than a tool does, never for less. The reason of an approval request or a denial names the rule, and
 * is recorded. Throws a `ConfigurationError` that names the place where the rules are wrong.
 */
export function approvalRules(given: ApprovalRules): ApprovalPolicy {
  requireRules(given, 'approvalRules')
  const rules = structuredClone(given)
  return ({ name: tool, agent, effect, input }) => {
    const { decision, reason, approvers } = findDecision(rules, { tool, agent, effect, input })
    if (decision === 'allow') return 'run'
    if (decision === 'deny') return { deny: `${reason} Nothing was run.` }
    return { ask: reason, ...(approvers && { approvers }) }
  }
}

/** The decision of rules about a call. */
export interface RuledDecision {
  readonly decision: RuleDecision
  /** The number of the rule that decided, from 1; absent if no rule fits. */
  readonly rule?: number
  /** Why, with the rule that says so: for the person who is asked, or the model whose call is denied. */
  readonly reason: string
  /** Who may approve, if the rule says so. */
  readonly approvers?: Approvers
}

/**
 * Returns what the rules decide about a call: the first rule that matches decides. If a condition is undecided, a rule
 * that asks or denies matches, and one that allows does not, so a model gains nothing by leaving a field out or
 * changing its type. Throws a `ConfigurationError` for rules that are wrong, and for what is not a call.
 */
export function decideByRules(rules: ApprovalRules, call: RuledCall): RuledDecision {
  requireRules(rules, 'decideByRules')
  requireOptions('decideByRules', ruledCall, call, 'the call')
  return findDecision(rules, call)
}

/** The same for rules that were checked. */
function findDecision({ rules, otherwise = 'ask' }: ApprovalRules, call: RuledCall): RuledDecision {
  for (const [index, rule] of rules.entries()) {
    const found = ruleFits(rule, call)
    if (found === true || (found === 'undecided' && rule.decision !== 'allow')) {
      const { name, why, decision, approvers } = rule
      const verdict =
        why ??
        { allow: 'The call is allowed.', ask: 'A person decides.', deny: 'The call is not allowed.' }[
          decision
        ]
      const label = name === undefined ? `rule ${index + 1}` : `rule ${index + 1}, ${name}`
      const doubt = found === 'undecided' ? '; a field of its condition is missing or of another type' : ''
      const reason = `${verdict} (${label}${doubt})`
      return { decision, rule: index + 1, reason, ...(approvers && { approvers }) }
    }
  }
  return { decision: otherwise, reason: `No rule fits this call, and ${otherwise} is decided otherwise.` }
}

function ruleFits({ tool, agent, effect, input = {} }: ApprovalRule, call: RuledCall): Finding {
  return joinFindings([
    tool === undefined || fitsAny(tool, call.tool),
    agent === undefined || (call.agent === undefined ? 'undecided' : fitsAny(agent, call.agent)),
    effect === undefined || (call.effect === undefined ? 'undecided' : call.effect === effect),
    ...Object.entries(input).map(([path, condition]) => fits(readField(call.input, path), condition)),
  ])
}

/** An example with what the rules decide about its call. */
export interface CheckedExample {
  /** Its number, from 1. */
  readonly number: number
  readonly example: RuleExample
  readonly decided: RuledDecision
  /** True if the decision is the one that the example demands. */
  readonly holds: boolean
}

/** Tries every example of the rules. Throws a `ConfigurationError` for rules that are wrong. */
export function checkExamples(rules: ApprovalRules): readonly CheckedExample[] {
  requireRules(rules, 'checkExamples')
  return (rules.examples ?? []).map((example, index) => {
    const decided = findDecision(rules, example.call)
    return { number: index + 1, example, decided, holds: decided.decision === example.decision }
  })
}

const maxBytes = 1024 * 1024

/**
 * Reads rules from a JSON file, which may have comments and commas at the ends of lists. Throws a `ConfigurationError` that
 * names the file: it is missing, too large (1 MiB at most), no JSON, or does not hold rules.
 */
export function readApprovalRules(path: string): ApprovalRules {
  const refuse = (cause: unknown): never => {
    throw new ConfigurationError(
      `The file ${path} cannot be read as approval rules: ${formatErrorSentence(cause)} Name a JSON file with version, rules and, where ` +
        'wanted, otherwise and examples.',
      { cause },
    )
  }
  let text = ''
  try {
    const { size } = statSync(path)
    if (size > maxBytes) throw new Error(`it has ${size} bytes, and rules have at most ${maxBytes}`)
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    refuse(cause)
  }
  const read = readJsonWithComments(text)
  const given = 'fault' in read ? refuse(read.fault) : read.value
  requireRules(given, `The approval rules of ${path}`)
  return given
}

/**
 * Matches a text with a pattern, in which `*` stands for any text. Takes time in proportion to the text, for each `*` of
 * the pattern.
 */
function isFitting(pattern: string, text: string): boolean {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let from = first.length
  for (const piece of others) {
    const place = text.indexOf(piece, from)
    if (place < 0) return false
    from = place + piece.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}

function fitsAny(patterns: string | readonly string[], text: string): boolean {
  return typeof patterns === 'string'
    ? isFitting(patterns, text)
    : patterns.some((pattern) => isFitting(pattern, text))
}

/** `undecided` where the value cannot be compared in that way. */
type Finding = boolean | 'undecided'

/** A false finding decides, then an undecided one. */
function joinFindings(findings: readonly Finding[]): Finding {
  if (findings.includes(false)) return false
  return findings.includes('undecided') ? 'undecided' : true
}

/** The value at a path, or `undefined`. Only own fields of objects and items of lists are looked at. */
function readField(input: unknown, path: string): unknown {
  let value = input
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as { readonly [name: string]: unknown })[name]
  }
  return value
}

type Conditions = Exclude<InputCondition, Scalar>

/** The finding of each kind of condition for a value that is present. */
const findings: {
  readonly [K in Exclude<keyof Conditions, 'present'>]-?: (
    value: unknown,
    expected: NonNullable<Conditions[K]>,
  ) => Finding
} = {
  is: (value, expected) => value === expected,
  oneOf: (value, expected) => expected.some((each) => value === each),
  like: (value, patterns) => (typeof value === 'string' ? fitsAny(patterns, value) : 'undecided'),
  above: (value, bound) => (typeof value === 'number' ? value > bound : 'undecided'),
  atLeast: (value, bound) => (typeof value === 'number' ? value >= bound : 'undecided'),
  below: (value, bound) => (typeof value === 'number' ? value < bound : 'undecided'),
  atMost: (value, bound) => (typeof value === 'number' ? value <= bound : 'undecided'),
  not: (value, condition) => invertFinding(fits(value, condition)),
  some: (value, condition) =>
    Array.isArray(value)
      ? invertFinding(joinFindings(value.map((item) => invertFinding(fits(item, condition)))))
      : 'undecided',
  every: (value, condition) =>
    Array.isArray(value) ? joinFindings(value.map((item) => fits(item, condition))) : 'undecided',
}

function fits(value: unknown, condition: InputCondition): Finding {
  if (typeof condition !== 'object' || condition === null) {
    return value === undefined ? 'undecided' : value === condition
  }
  const found: Finding[] = []
  for (const [kind, expected] of Object.entries(condition)) {
    if (expected === undefined) continue
    if (kind === 'present') found.push((value !== undefined) === expected)
    else if (value === undefined)
      found.push(kind === 'not' ? invertFinding(fits(undefined, expected as InputCondition)) : 'undecided')
    else
      found.push(
        (findings[kind as keyof typeof findings] as (...given: unknown[]) => Finding)(value, expected),
      )
  }
  return joinFindings(found)
}

function invertFinding(finding: Finding): Finding {
  return finding === 'undecided' ? finding : !finding
}

const { fields, filledText, listOf, maybe, oneOf, recordOf, trueOrFalse, valueThat } = option

const maxRules = 1_000
const maxPatternLength = 200
/** Conditions within conditions. */
const maxDepth = 10

const decision = oneOf(['allow', 'ask', 'deny'])
const effect = oneOf(['read', 'write'])

const isPattern = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && value.length <= maxPatternLength

const patterns: Schema = valueThat(
  `a text of at most ${maxPatternLength} characters in which * stands for any text, or a list of such texts`,
  (value) => isPattern(value) || (Array.isArray(value) && value.length > 0 && value.every(isPattern)),
)

const isScalar = (value: unknown): boolean =>
  value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)

const scalar: Schema = valueThat('a text, a finite number, true, false or null', isScalar)

const number: Schema = valueThat('a finite number', Number.isFinite)

const path: Schema = valueThat(
  'the path of a field, such as amount or to.country',
  (value) => typeof value === 'string' && value.split('.').every((name) => name !== ''),
)

function conditionWithin(depth: number): Schema {
  return (value) => {
    if (isScalar(value)) return undefined
    if (depth === 0)
      return { path: '', what: `holds conditions within conditions, more than ${maxDepth} deep` }
    const inner = maybe((each) => conditionWithin(depth - 1)(each))
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
    )(value)
    if (fault) return fault
    const isEmpty = Object.values(value as object).every((each) => each === undefined)
    return isEmpty
      ? { path: '', what: 'states nothing; give a value, or one of is, oneOf, like …' }
      : undefined
  }
}

function input(value: unknown): Fault | undefined {
  const fault = recordOf(conditionWithin(maxDepth))(value)
  if (fault) return fault
  for (const name of Object.keys(value as object)) {
    if (path(name))
      return {
        path: '',
        what: `holds the path '${name.slice(0, 40)}'; expected names with dots between them`,
      }
  }
  return undefined
}

const ruleFields: Schema = fields<ApprovalRule>(
  {
    name: maybe(filledText),
    tool: maybe(patterns),
    agent: maybe(patterns),
    effect: maybe(effect),
    input: maybe(input),
    decision,
    approvers: maybe(approvers),
    why: maybe(filledText),
  },
  { verdict: 'decision', action: 'decision', reason: 'why', message: 'why', args: 'input' },
)

const rule: Schema = (given) => {
  const fault = ruleFields(given)
  if (fault) return fault
  const { decision: decided, approvers: demanded } = given as ApprovalRule
  if (demanded === undefined || decided === 'ask') return undefined
  return { path: 'approvers', what: `belongs to a rule that asks, and this one decides ${decided}` }
}

const call: Schema = fields<RuledCall>({
  tool: filledText,
  effect: maybe(effect),
  agent: maybe(filledText),
  input: maybe(option.anyObject),
})

const rules: Schema = fields<ApprovalRules>(
  {
    version: valueThat('1, the version of this format', (value) => value === 1),
    rules: (value) =>
      listOf(rule)(value) ??
      ((value as readonly unknown[]).length > maxRules
        ? { path: '', what: `holds more than ${maxRules} rules` }
        : undefined),
    otherwise: maybe(decision),
    examples: maybe(listOf(fields<RuleExample>({ call, decision }))),
  },
  { default: 'otherwise', fallback: 'otherwise', tests: 'examples' },
)

/** Throws a `ConfigurationError` that names the place where these are not rules; `subject` says what is looked at. */
function requireRules(given: unknown, subject: string): asserts given is ApprovalRules {
  requireOptions(subject, rules, given)
}

/** It may say more of the call, such as its run. */
const ruledCall = option.valueThat(
  "a call with the name of its tool, as in { tool: 'pay', input: { amount: 5 } }",
  (value) => typeof Object(value).tool === 'string',
)
