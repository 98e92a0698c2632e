import type { RunRule, RunRuleOption } from '../events/agent-definition.ts'
import { computeDigest } from '../values/digest.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import type { RuntimeRules } from './registry.ts'

/** The rules of a run as its ledger names them: no ledger holds code. */
export function listRules(rules: RuntimeRules): readonly RunRule[] {
  const { guardrails = [], outputStream, nestHandoffHistory } = rules
  const toRule = (option: RunRuleOption, code: Code | undefined, name?: string): readonly RunRule[] =>
    code ? [{ option, name: name ?? (code.name || option), digest: digestCode(code) }] : []
  return [
    ...toRule('approval', rules.approval),
    ...guardrails.flatMap(({ name, check }) => toRule('guardrails', check, name)),
    ...toRule('handoffFilter', rules.handoffFilter),
    ...toRule('handoffHistoryMapper', rules.handoffHistoryMapper),
    ...toRule('inputFilter', rules.inputFilter),
    ...toRule('prepareTurn', rules.prepareTurn),
    ...(outputStream?.transforms ?? []).flatMap(({ name, begin }) => toRule('outputStream', begin, name)),
    ...(nestHandoffHistory === undefined
      ? []
      : [
          { option: nestOption, name: String(nestHandoffHistory), digest: computeDigest(nestHandoffHistory) },
        ]),
  ]
}

/** The rules among the options of a run. */
export function pickRules(options: RuntimeRules): RuntimeRules {
  const { approval, guardrails, handoffFilter, nestHandoffHistory, handoffHistoryMapper } = options
  const { inputFilter, prepareTurn, outputStream } = options
  return omitUndefined({
    ...{ approval, guardrails, handoffFilter, nestHandoffHistory, handoffHistoryMapper },
    ...{ inputFilter, prepareTurn, outputStream },
  })
}

const nestOption: RunRuleOption = 'nestHandoffHistory'

/** A function of any kind, for its name and its text. */
type Code = ((...given: never) => unknown) & { readonly name: string }

/** A function as the ledger names it. */
export function nameCode(code: Code, name: string): { readonly name: string; readonly digest: string } {
  return { name: code.name || name, digest: digestCode(code) }
}

/** Of the text of a function: what it is bound to, or closes over, has none. */
function digestCode(code: Code): string {
  return computeDigest(Function.prototype.toString.call(code))
}

/** The rules with which a process drives a run: what it was given, and what is on record and needs no code. */
export function restoreRules(recorded: readonly RunRule[], given: RuntimeRules): RuntimeRules {
  const nested = recorded.find(({ option }) => option === nestOption)
  if (nested === undefined || given.nestHandoffHistory !== undefined) return given
  return { ...given, nestHandoffHistory: nested.name === 'true' }
}

/** Returns the recorded rules that are not among the given ones: no code of their name was given. */
export function findLackingRules(recorded: readonly RunRule[], given: RuntimeRules): readonly RunRule[] {
  if (recorded.length === 0) return recorded
  const there = listRules(restoreRules(recorded, given))
  return recorded.filter(
    ({ option, name }) => !there.some((each) => each.option === option && isNamed(each, name)),
  )
}

/** A filter is known by its option: there is one of it. */
function isNamed(rule: RunRule, name: string): boolean {
  return (rule.option !== 'guardrails' && rule.option !== 'outputStream') || rule.name === name
}

/**
 * Refuses to drive a run without code that it was started with, unless its runtime says `onDrift: 'continue'`; with
 * `refuse`, also with other code.
 */
export function requireRules(
  runId: RunId,
  recorded: readonly RunRule[],
  { given, onDrift }: { readonly given: RuntimeRules; readonly onDrift: 'continue' | 'refuse' | undefined },
): void {
  if (recorded.length === 0 || onDrift === 'continue') return
  const lacking = findLackingRules(recorded, given)
  if (lacking.length > 0) {
    throw new ConfigurationError(
      `Run ${runId} was started with code of its own that no ledger holds, and it was not given to continue with: ${formatRules(lacking)}. Give it to resume again, or create the runtime with onDrift: 'continue' to go on without it.`,
    )
  }
  const there = listRules(restoreRules(recorded, given))
  const changed = recorded.filter(({ digest }) => !there.some((each) => each.digest === digest))
  if (onDrift !== 'refuse' || changed.length === 0) return
  throw new ConfigurationError(
    `Run ${runId} was started with other code of its own, and onDrift is refuse. What differs: ${formatRules(changed)}. Resume it with the code that it was started with, or with onDrift: 'continue'.`,
  )
}

function formatRules(rules: readonly RunRule[]): string {
  return rules.map(({ option, name }) => (name === option ? option : `${option} ${name}`)).join(', ')
}
