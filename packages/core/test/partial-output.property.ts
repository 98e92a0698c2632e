import * as fc from 'fast-check'
import { firstValueFrom, Observable, toArray } from 'rxjs'
import { expect, it } from 'vitest'
import * as z from 'zod'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  ProviderError,
  type Clock,
  type Model,
} from '@tallystick/core'
import { manualClock, waitUntilSettled } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { readPartialJson } from '../src/values/partial-json.ts'
import { isBeginning } from './partial-output.ts'

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 5 }),
)
const key = fc.oneof(anyText, fc.constantFrom('__proto__', 'constructor', 'answer', ''))

/** Pieces of a text, cut anywhere. */
const cuts = fc.array(fc.nat(30), { maxLength: 12 })
function cut(text: string, lengths: readonly number[]): readonly string[] {
  let at = 0
  const pieces = [...lengths, text.length].map((length) => text.slice(at, (at += length)))
  return pieces.filter((piece) => piece !== '')
}

/** The texts that grow by these pieces. */
function grow(pieces: readonly string[]): readonly string[] {
  return pieces.map((_, index) => pieces.slice(0, index + 1).join(''))
}

it('what is read of a cut text is a beginning of the value, and of all of it the value', () => {
  const value = fc.oneof(fc.dictionary(key, fc.jsonValue({ stringUnit: 'binary' })), fc.array(fc.jsonValue()))
  fc.assert(
    fc.property(value, cuts, fc.constantFrom(0, 1), (given, lengths, indent) => {
      const text = JSON.stringify(given, null, indent)
      const whole: unknown = JSON.parse(text)
      let last: unknown
      for (const beginning of grow(cut(text, lengths))) {
        const read = readPartialJson(beginning)
        if (read === undefined || !isBeginning(read, whole) || !isBeginning(last ?? read, read))
          throw new Error(`${JSON.stringify(read)} of ${beginning}`)
        last = read
      }
      expect(JSON.stringify(last)).toBe(JSON.stringify(whole))
    }),
    { numRuns: tries(2_000) },
  )
})

it('any text at all is read without a fault', () => {
  const json = fc.oneof(
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc.string({ unit: 'binary' }),
  )
  fc.assert(
    fc.property(fc.array(json), cuts, (texts, lengths) => {
      for (const beginning of grow(cut(texts.join(''), lengths)))
        expect(() => readPartialJson(beginning)).not.toThrow()
    }),
    { numRuns: tries(1_000) },
  )
})

interface Shape {
  readonly schema: z.ZodType
  readonly value: fc.Arbitrary<unknown>
}

/** A random schema, with what fits it. */
const { shape } = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<Shape>(
      { schema: z.string(), value: anyText },
      { schema: z.number(), value: fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n || 0) },
      { schema: z.boolean(), value: fc.boolean() },
      { schema: z.string().nullable(), value: fc.option(anyText) },
    ),
    tie('shape').map(({ schema, value }) => ({
      schema: z.array(schema),
      value: fc.array(value, { maxLength: 4 }),
    })),
    fc
      .dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.tuple(tie('shape'), fc.boolean()), { maxKeys: 4 })
      .map((fields) => {
        const shapes = Object.entries(fields)
        const schema = z.object(
          Object.fromEntries(
            shapes.map(([name, [each, isOptional]]) => [
              name,
              isOptional ? each.schema.optional() : each.schema,
            ]),
          ),
        )
        const requiredKeys = shapes.flatMap(([name, [, isOptional]]) => (isOptional ? [] : [name]))
        const value = fc.record(Object.fromEntries(shapes.map(([name, [each]]) => [name, each.value])), {
          requiredKeys,
        })
        return { schema, value }
      }),
  ),
}))

/** A call of the model: what it writes, and whether it breaks off. */
const spoiled = fc.record({
  kind: fc.constantFrom('fails', 'cut', 'prose'),
  keep: fc.nat(40),
  lengths: cuts,
})

function createModel(
  calls: readonly { readonly pieces: readonly string[]; readonly fails: boolean }[],
  clock: Clock,
): Model {
  let next = 0
  return {
    ...{ provider: 'test', api: 'test', modelId: 'm' },
    stream: () =>
      new Observable((subscriber) => {
        const { pieces, fails } = calls[next++]!
        const text = pieces.join('')
        const write = async (): Promise<void> => {
          for (const piece of pieces) {
            subscriber.next({ type: 'model_text', part: 0, text: piece })
            await new Promise<void>((resolve) => void clock.schedule(1, resolve))
          }
          if (fails)
            return subscriber.error(
              new ProviderError({ class: 'overloaded', message: 'Busy.', retryable: true }),
            )
          const parts = text === '' ? [] : [{ part: 0, type: 'text', text } as const]
          subscriber.next({ type: 'model_finished', stopReason: 'end', parts })
          subscriber.complete()
        }
        void write()
      }),
  }
}

it('partialOutput$ grows to the output, begins anew where the answer does, and is the same for who comes late', async () => {
  const answer = shape.chain(({ schema, value }) => fc.record({ schema: fc.constant(schema), value }))
  const writing = fc.record({
    lengths: cuts,
    fence: fc.boolean(),
    bare: fc.boolean(),
    indent: fc.constantFrom(0, 2),
  })
  await fc.assert(
    fc.asyncProperty(answer, writing, fc.array(spoiled, { maxLength: 2 }), async (given, how, before) => {
      const isObject = given.schema instanceof z.ZodObject
      const json = JSON.stringify(
        isObject || how.bare ? given.value : { answer: given.value },
        null,
        how.indent,
      )
      const text = how.fence ? `Here it is:\n\`\`\`json\n${json}\n\`\`\`` : json
      const calls = [
        ...before.map(({ kind, keep, lengths }) => {
          const words = kind === 'prose' ? 'I am not sure: { it is' : json.slice(0, keep)
          return { pieces: cut(kind === 'cut' ? `${words}…` : words, lengths), fails: kind === 'fails' }
        }),
        { pieces: cut(text, how.lengths), fails: false },
      ]
      const clock = manualClock()
      const ledger = memoryLedger({ clock })
      const model = createModel(calls, clock)
      const agent = defineAgent({
        ...{ name: 'a', instructions: 'Answer.', model, output: given.schema, maxOutputRepairs: 4 },
        retry: { maxAttempts: 4 },
      })
      const host = { clock, random: () => 0 }
      const run = createRuntime({ ledger, agents: [agent], host }).run(agent, 'Go.')
      const live = firstValueFrom(run.partialOutput$.pipe(toArray()))
      const { output, reason } = await waitUntilSettled(clock, run.result)
      expect(reason).toBe('answered')
      const seen = await live
      let last: unknown
      for (const value of seen) {
        if (last !== undefined && value !== undefined && !isBeginning(last, value))
          throw new Error(`${JSON.stringify(value)} does not continue ${JSON.stringify(last)}`)
        last = value
      }
      expect(last).toEqual(output)
      const late = createRuntime({ ledger, agents: [agent], host }).resume(run.id)
      expect(await firstValueFrom(late.partialOutput$.pipe(toArray()))).toEqual(seen)
    }),
    { numRuns: tries(300) },
  )
})
