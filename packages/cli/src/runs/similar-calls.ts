import { canonicalJson, type JsonObject, type Outcome, type ResultPart } from '@tallystick/core/vocabulary'
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
  const [first] = calls
  if (first === undefined) return ''
  const tool = oneLine(first.name, maxNameCharacters)
  const name = calls.length === 1 ? tool : `${tool} × ${calls.length}`
  return [name, ...[endingsText(calls), varyingText(calls)].filter((text) => text !== '')].join('; ')
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

/** The calls of each tool, in the order in which tools were first asked for. */
export function byTool(calls: readonly CallStory[]): readonly (readonly CallStory[])[] {
  return [...Map.groupBy(calls, ({ name }) => name).values()]
}

function endingsText(calls: readonly CallStory[]): string {
  const ended = calls.filter((call): call is EndedCall => call.outcome !== undefined)
  const open = calls.length - ended.length
  const groups = [...Map.groupBy(ended, endingOf)].map(([ending, { length }]) =>
    length === calls.length ? (length === 1 ? ending : `all ${ending}`) : `${length} ${ending}`,
  )
  return [...groups, ...(open > 0 ? [`${open} open`] : [])].join(', ')
}

/** An empty result says more than that it was a success. */
function endingOf({ outcome, content }: EndedCall): string {
  const text = contentText(content).trim()
  if (outcome === 'success' && ['', '[]', '{}', 'null', '""'].includes(text)) return 'empty'
  return outcome
}

/** The arguments that are not the same in all calls, with their values. */
function varyingText(calls: readonly CallStory[]): string {
  if (calls.length < 2) return ''
  const inputs = calls.map(({ requested }) => requested)
  const keys = [...new Set(inputs.flatMap((input) => Object.keys(input)))]
  const varying = keys.flatMap((key) => {
    const values = [...new Set(inputs.map((input) => valueText(input, key)))]
    if (values.length < 2) return []
    const more = values.length - maxValues
    return [
      `${oneLine(key, maxNameCharacters)}: ${values.slice(0, maxValues).join(', ')}${more > 0 ? `, … ${more} more` : ''}`,
    ]
  })
  if (varying.length === 0) return 'always with the same input'
  const left = varying.length - maxKeys
  return [...varying.slice(0, maxKeys), ...(left > 0 ? [`${left} more differ`] : [])].join('; ')
}

function valueText(input: JsonObject, key: string): string {
  const value = Object.hasOwn(input, key) ? input[key] : undefined
  return value === undefined ? 'nothing' : oneLine(canonicalJson(value), maxValueCharacters)
}

/** Calls that ended alike, with what they ended with. */
export function alikeText(calls: readonly CallStory[]): string {
  const result = oneLine(contentText(calls[0]?.content ?? []), maxResultCharacters)
  return `${similarText(calls)}\nresult each time: ${result === '' ? 'nothing' : result}`
}
