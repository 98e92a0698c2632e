import { boundedText } from '../content/bounded-text.ts'
import { contentOf } from '../content/content.ts'
import { jsonOf } from '../content/json-value.ts'
import type { ToolEffect } from '@tallystick/core/vocabulary'
import type { InputIssue, Parsed } from '../input/input-issue.ts'
import type { OutputCheck } from '../input/schema.ts'
import { type Ending, describeError, endingOf, textEnding } from './outcome.ts'

const maxIssues = 8
const maxIssueCharacters = 200

/** What a tool says of its results. */
export interface ResultRules {
  readonly effect: ToolEffect
  /** Checks what the tool returned. */
  readonly output?: OutputCheck | undefined
  /** Makes what the model reads of it. */
  readonly toModel?: ((result: never) => unknown) | undefined
}

/**
 * What a tool returned, as an ending: checked against its output schema, whole, and as the model is shown it. At once where the
 * tool has neither an output schema nor `toModel`.
 */
export function resultEnding(returned: unknown, rules: ResultRules): Ending | Promise<Ending> {
  if (rules.output === undefined && rules.toModel === undefined) return endingOf(returned, rules.effect)
  return checkedEnding(returned, rules)
}

async function checkedEnding(returned: unknown, rules: ResultRules): Promise<Ending> {
  const { effect, output, toModel } = rules
  let checked: Parsed<unknown>
  try {
    checked = output ? await output(returned) : { ok: true, value: returned }
  } catch (error) {
    const why = boundedText(describeError(error), maxIssueCharacters)
    const ending = unshownEnding(returned, `could not be checked against its output schema (${why})`, effect)
    return { ...ending, thrown: error }
  }
  if (!checked.ok)
    return unshownEnding(returned, 'does not fit its output schema', effect, linesOf(checked.issues))
  const ending = endingOf(checked.value, effect)
  if (toModel === undefined || ending.outcome !== 'success') return ending
  return { ...ending, ...(await projectionOf(checked.value, toModel as (result: unknown) => unknown)) }
}

async function projectionOf(
  result: unknown,
  toModel: (result: unknown) => unknown,
): Promise<Pick<Ending, 'projected' | 'thrown'>> {
  try {
    return { projected: contentOf(await toModel(result)) }
  } catch (error) {
    // The call has succeeded, and its result is on record: only the words for the model failed.
    const why = boundedText(describeError(error), maxIssueCharacters)
    const text = `The tool has done its work, but its result cannot be shown (${why}).`
    return { projected: [{ type: 'text', text }], thrown: error }
  }
}

/** What does not fit, in lines for the model. */
function linesOf(issues: readonly InputIssue[]): readonly string[] {
  const lines = issues.map(({ path, message }) => {
    const place = path.length === 0 ? 'the result' : path.map(String).join('.')
    return `- ${boundedText(`${place}: ${message.replaceAll(/\s+/g, ' ')}`, maxIssueCharacters)}`
  })
  const more = lines.length > maxIssues ? [`- and ${lines.length - maxIssues} more`] : []
  return [...lines.slice(0, maxIssues), ...more]
}

/** The model reads why it is not shown what the tool returned, and the record holds what it was. */
function unshownEnding(
  returned: unknown,
  why: string,
  effect: ToolEffect,
  lines: readonly string[] = [],
): Ending {
  const done = effect === 'write' ? ' What it does has been done: do not call it again for that.' : ''
  const reason = `The tool ran, but what it returned ${why}, so it is not shown.${done}`
  const { content } = textEnding('failed', [reason, ...lines].join('\n'))
  return { outcome: 'failed', content: [...content, ...recorded(returned)], projected: content }
}

function recorded(returned: unknown): Ending['content'] {
  try {
    return [{ type: 'text', text: JSON.stringify(jsonOf(returned)) }]
  } catch {
    return []
  }
}
