import { getOwn } from '@tallystick/core/kit'
import { canonicalJson, type JsonObject, type Outcome, type ResultPart } from '@tallystick/core/vocabulary'
import { maxOutlinedValues, type CallEnding, type ToolOutline } from '@tallystick/ledger'
import type { CallStory } from './call-story.ts'
import { contentText, oneLine } from '../view/text/content-text.ts'

const maxValues = 5
const maxKeys = 3
const maxNameCharacters = 60
const maxValueCharacters = 30
const maxResultCharacters = 40

/** A call that has ended. */
interface EndedCall extends CallStory {
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
}

/** What calls of one tool came to, on one line: `search_orders × 20; all empty; query: "a", "b", … 15 more`. */
export function similarText(calls: readonly CallStory[]): string {
  return calls.length === 0 ? '' : outlineText(outlineOf(calls))
}

/** The same, of the outline of a tool. */
export function outlineText(outline: ToolOutline): string {
  const tool = oneLine(outline.name, maxNameCharacters)
  const name = outline.calls === 1 ? tool : `${tool} × ${outline.calls}`
  return [name, ...[endingsText(outline), varyingText(outline)].filter((text) => text !== '')].join('; ')
}

/** Whether two calls ended alike: of one tool, with one outcome and one result. */
export function endedAlike(one: CallStory, other: CallStory): boolean {
  return (
    one.name === other.name &&
    one.outcome !== undefined &&
    one.outcome === other.outcome &&
    contentText(one.content ?? []) === contentText(other.content ?? [])
  )
}

/** Of calls of one tool, what a run's outline says of all of them. */
function outlineOf(calls: readonly CallStory[]): ToolOutline {
  const ended = calls.filter((call): call is EndedCall => call.outcome !== undefined)
  const inputs = calls.map(({ requested }) => requested)
  const keys = [...new Set(inputs.flatMap((input) => Object.keys(input)))]
  return {
    name: calls[0]?.name ?? '',
    calls: calls.length,
    endings: [...Map.groupBy(ended, endingOf)].map(([ending, { length }]) => ({ ending, count: length })),
    inputs: keys.map((key) => ({ key, values: inputs.map((input) => valueOf(input, key)) })),
  }
}

function endingsText({ calls, endings }: ToolOutline): string {
  const groups = endings.map(({ ending, count }) =>
    count === calls ? (count === 1 ? ending : `all ${ending}`) : `${count} ${ending}`,
  )
  const open = endings.reduce((left, { count }) => left - count, calls)
  return [...groups, ...(open > 0 ? [`${open} open`] : [])].join(', ')
}

/** An empty result says more than that it was a success. */
function endingOf({ outcome, content }: EndedCall): CallEnding['ending'] {
  const text = contentText(content).trim()
  if (outcome === 'success' && ['', '[]', '{}', 'null', '""'].includes(text)) return 'empty'
  return outcome
}

/** The arguments that are not the same in all calls, with their values. */
function varyingText({ calls, inputs }: ToolOutline): string {
  if (calls < 2) return ''
  const varying = inputs.flatMap(({ key, values }) => {
    const texts = [...new Set(values.map(valueText))]
    if (texts.length < 2) return []
    const more = texts.length - maxValues
    const count = texts.length > maxOutlinedValues ? `at least ${more}` : `${more}`
    return [
      `${oneLine(key, maxNameCharacters)}: ${texts.slice(0, maxValues).join(', ')}${more > 0 ? `, … ${count} more` : ''}`,
    ]
  })
  if (varying.length === 0) return 'always with the same input'
  const left = varying.length - maxKeys
  return [...varying.slice(0, maxKeys), ...(left > 0 ? [`${left} more differ`] : [])].join('; ')
}

function valueOf(input: JsonObject, key: string): string | null {
  const value = getOwn(input, key)
  return value === undefined ? null : canonicalJson(value)
}

function valueText(value: string | null): string {
  return value === null ? 'nothing' : oneLine(value, maxValueCharacters)
}

/** Calls that ended alike, with what they ended with. */
export function alikeText(calls: readonly CallStory[]): string {
  const result = oneLine(contentText(calls[0]?.content ?? []), maxResultCharacters)
  return `${similarText(calls)}\nresult each time: ${result === '' ? 'nothing' : result}`
}
