import { readAnswers } from '../events/answer-schema.ts'
import type { OutputDefinition } from '../events/agent-definition.ts'
import { isJsonObject, isSameJson, type Json } from '../values/json.ts'
import { readPartialJson } from '../values/partial-json.ts'
import type { FoldedEvent, ShownText } from './run-streams.ts'

/**
 * An output as far as it is written: texts may be cut, lists and objects may lack what comes later. Numbers, `true`,
 * `false` and `null` are there once they are whole.
 */
export type PartialOutput<Output> = Output extends string
  ? string
  : Output extends readonly (infer Item)[]
    ? readonly PartialOutput<Item>[]
    : Output extends object
      ? { readonly [Field in keyof Output]?: PartialOutput<Output[Field]> }
      : Output

/** The answer as it is on record so far. */
export interface WrittenAnswer {
  /** `undefined` where what was reported before is no part of the answer any more. */
  readonly value: Json | undefined
  /** It is whole, and fits the schema. */
  readonly isWhole: boolean
}

/** Finds where the JSON of a reply begins: at once, or in the fenced block that some models cannot leave out. */
function findStart(text: string): number | undefined {
  const found = /^\s*(?=[[{])|```(?:json)?[^\S\n]*\n\s*(?=[[{])/i.exec(text)
  return found ? found.index + found[0].length : undefined
}

/** An answer is read again when its text has grown by a 64th: so that what this costs grows with the text, not with its square. */
const SHARE = 64

/** Reads the answer of a run from its events, from the first one, while the model writes it. */
export class AnswerReader {
  /** How much of the reply was there when it was read last. */
  #readTo = 0
  /** Where its JSON begins, once that is known. */
  #start: number | undefined
  #reported: Json | undefined

  /** Returns what is known of the answer after an event; `undefined` if that is what was reported last. */
  next({ event, state }: FoldedEvent, { text, updates }: ShownText): WrittenAnswer | undefined {
    const { output: asked } = state.definition
    if (event.type === 'output_checked') {
      this.#restart()
      this.#reported = event.output
      return { value: event.output, isWhole: event.valid }
    }
    if (event.type === 'run_finished') {
      const { output, lastText } = state
      return this.#report(
        output ? output.value : asked ? undefined : lastText || undefined,
        output !== undefined,
      )
    }
    const isAnew = event.type === 'model_call_started' || updates.some(({ type }) => type === 'withdrawn')
    if (isAnew) this.#restart()
    if (updates.length === 0) return isAnew ? this.#report(undefined) : undefined
    if (asked === undefined) return this.#report(text || undefined)
    const value = this.#readMore(text, asked)
    return value !== undefined || isAnew ? this.#report(value) : undefined
  }

  #restart(): void {
    this.#start = undefined
    this.#readTo = 0
  }

  #readMore(text: string, asked: OutputDefinition): Json | undefined {
    if (text.length - this.#readTo < text.length / SHARE) return undefined
    this.#readTo = text.length
    this.#start ??= findStart(text)
    const value = this.#start === undefined ? undefined : readPartialJson(text.slice(this.#start))
    // Before its first field is there, an object may be what wraps the answer, or the answer.
    const isEmpty = isJsonObject(value) && Object.keys(value).length === 0
    if (value === undefined || (asked.wrapped && isEmpty)) return undefined
    return readAnswers(asked, value)[0]
  }

  #report(value: Json | undefined, isWhole = false): WrittenAnswer | undefined {
    const before = this.#reported
    this.#reported = value
    if (value === undefined || before === undefined) return value === before ? undefined : { value, isWhole }
    return isSameJson(value, before) ? undefined : { value, isWhole }
  }
}
