import type { RuntimeEvent } from '@tallystick/core'
import { isFrozenOnce } from '@tallystick/core/store-kit'
import { canonicalJson, type Json } from '@tallystick/core/vocabulary'
import { envelopeNames } from '../../record/envelope.ts'

/** A field of a body, with its name as JSON: as the first of the body, and as one that follows another. */
interface WrittenField {
  readonly name: string
  readonly asFirst: string
  readonly asNext: string
}

/** The fields of a body in the order in which they are written. */
type Order = readonly WrittenField[]

/** The names of an event's fields, and the order of those that are written. */
interface KnownOrder {
  readonly names: readonly string[]
  readonly order: Order
}

/**
 * Writes what events say as canonical JSON, without a copy of them. Events of a type most often have the same fields, so
 * those of the last one are kept in their order.
 */
export class BodyFields {
  readonly #leftOut: ReadonlySet<string>
  readonly #known = new Map<RuntimeEvent['type'], KnownOrder>()

  /** `alsoLeftOut` are names of fields that are not written, beside those of the envelope. */
  constructor(alsoLeftOut: readonly string[] = []) {
    this.#leftOut = new Set<string>([...envelopeNames.filter((name) => name !== 'firstSeq'), ...alsoLeftOut])
  }

  /** All that is not envelope. Throws what `canonicalJson` throws. */
  textOf(event: RuntimeEvent): string {
    const fields = event as unknown as Readonly<Record<string, Json | undefined>>
    let text = '{'
    for (const { name, asFirst, asNext } of this.#orderOf(event)) {
      const value = fields[name]
      if (value === undefined) continue
      text += text.length > 1 ? asNext : asFirst
      text += event.type === 'run_started' ? textOfStart(value) : canonicalJson(value)
    }
    return `${text}}`
  }

  #orderOf(event: RuntimeEvent): Order {
    const known = this.#known.get(event.type)
    if (known !== undefined && hasNames(event, known.names)) return known.order
    const names = Object.keys(event)
    // One by one: what V8 makes of a `map` is a list of another shape once that is compiled, and each reader is compiled again.
    const order: WrittenField[] = []
    for (const name of names.toSorted()) if (!this.#leftOut.has(name)) order.push(writtenField(name))
    // An append may hold events of any number of unknown types.
    if (this.#known.size < maxTypes || known !== undefined) this.#known.set(event.type, { names, order })
    return order
  }
}

const maxTypes = 100

function writtenField(name: string): WrittenField {
  const asFirst = `${JSON.stringify(name)}:`
  return { name, asFirst, asNext: `,${asFirst}` }
}

/** What the runs of an agent all begin with, such as its definition, as it was written for the first of them. */
const startTexts = new WeakMap<object, string>()

function textOfStart(value: Json): string {
  if (typeof value !== 'object' || value === null || !isFrozenOnce(value)) return canonicalJson(value)
  const known = startTexts.get(value)
  if (known !== undefined) return known
  const text = canonicalJson(value)
  startTexts.set(value, text)
  return text
}

/** Whether the fields of an event have these names, in this order. */
function hasNames(event: RuntimeEvent, names: readonly string[]): boolean {
  let count = 0
  for (const name in event) if (name !== names[count++]) return false
  return count === names.length
}
