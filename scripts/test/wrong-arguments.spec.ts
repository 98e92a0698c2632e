// What a plain JavaScript caller can get wrong at any function that is exported: the error is one of ours, and says what to do.
import { inspect } from 'node:util'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { memoryLedger, TallystickError } from '@tallystick/core'
import { option } from '@tallystick/core/internal'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { functionsOf } from '../testing/exported-functions.ts'

/** Entries whose functions are called by code, not by people: what they are given was checked before, or is of a ledger. */
const builtOn: Readonly<Record<string, string>> = {
  '@tallystick/core/internal': 'what the other packages build on',
  '@tallystick/core/machine': 'pure functions of states and events, called for each event',
  '@tallystick/core/schemas': 'schemas, which report faults as values',
  '@tallystick/core/store-kit': 'what stores build on, called for each append',
  '@tallystick/core/vocabulary': 'views of values that were checked, called for each event',
}

/** Functions that may throw what is not an error of ours. */
const exempt: Readonly<Record<string, string>> = {
  '@tallystick/core joinText': 'a view of the parts of a message, called for each message',
  '@tallystick/core foldedHistory': 'a filter that a handoff is given',
  '@tallystick/testkit cutOtherwise': 'cuts bytes of a test',
  '@tallystick/engines/temporal/workflow tallystickRun': 'a workflow, which only a worker of Temporal calls',
  '@tallystick/tools json': 'its NotJsonError becomes the outcome of the tool call that returns it',
}

const values: readonly (readonly [string, () => unknown])[] = [
  ['{}', () => ({})],
  ['undefined', () => undefined],
  ['null', () => null],
  ['1', () => 1],
  ["''", () => ''],
  ['[]', () => []],
  ['() => undefined', () => () => undefined],
]

const ledger = memoryLedger()
const runId = sampleRunId(1)
const fact = sampleFacts(runId).run_started
await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stampFacts(runId, [fact]), { durability: 'barrier' })

/** Every argument wrong, and one of them after others that are sound. */
function readArguments(wrong: () => unknown): readonly (readonly unknown[])[] {
  const alone = [1, 2, 3, 4].map((count) => Array.from({ length: count }, wrong))
  const behind = [[ledger], [ledger, runId], [ledger, runId, 'all'], [ledger, runId, runId]]
  const before = [[runId], [runId, runId], [runId, 'all', { by: 'ada', reason: 'asked' }]]
  return [
    ...alone,
    ...behind.flatMap((sound) => [
      [...sound, wrong()],
      [...sound, wrong(), wrong()],
    ]),
    ...before.map((sound) => [wrong(), ...sound]),
  ]
}

/** Waits for what a function comes to: its answer, the first item, or what its stream emits, unless that never comes. */
async function awaitOutcome(returned: unknown): Promise<void> {
  if (typeof returned !== 'object' || returned === null) return
  const wait = new Promise<void>((resolve) => {
    setImmediate(() => setImmediate(resolve))
  })
  if (option.isThenable(returned)) return void (await Promise.race([Promise.resolve(returned), wait]))
  if (Symbol.asyncIterator in returned && 'next' in returned) {
    const items = returned as AsyncGenerator
    await Promise.race([items.next(), wait])
    void items.return(undefined).catch(() => {})
  }
  if ('subscribe' in returned) {
    const stream = returned as { subscribe(observer: object): { unsubscribe(): void } }
    const emitted = Promise.withResolvers<unknown>()
    const { resolve: next, reject: error } = emitted
    const subscription = stream.subscribe({ next, error, complete: next })
    await Promise.race([emitted.promise, wait]).finally(() => subscription.unsubscribe())
  }
}

async function catchError(
  call: (...given: readonly unknown[]) => unknown,
  given: readonly unknown[],
): Promise<unknown> {
  try {
    await awaitOutcome(call(...given))
    return undefined
  } catch (error) {
    return error
  }
}

const entries = await functionsOf([
  'core',
  'testkit',
  'ledger',
  'replay',
  'tools',
  'providers',
  'server',
  'otel',
  'engines',
  'evals',
  'cli',
])

const asked = Object.entries(entries).flatMap(([entry, functions]) =>
  Object.hasOwn(builtOn, entry)
    ? []
    : Object.entries(functions).map(([name, call]) => [`${entry} ${name}`, call] as const),
)

describe('what a function cannot use', () => {
  // The command line prints its help where it gets no words.
  beforeAll(() => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    return () => written.mockRestore()
  })

  it.each(asked.filter(([name]) => !Object.hasOwn(exempt, name)))(
    '%s refuses in our words',
    async (_name, call) => {
      const raw: string[] = []
      for (const [name, wrong] of values) {
        for (const given of readArguments(wrong)) {
          const error = await catchError(call, given)
          if (error === undefined || error instanceof TallystickError) continue
          const shown = given.map((each) =>
            each === ledger ? 'ledger' : typeof each === 'string' ? `'${each}'` : name,
          )
          raw.push(`(${shown.join(', ')}) ${inspect(error).split('\n')[0]}`)
        }
      }
      expect(raw).toEqual([])
    },
  )
})

it('leaves out no function that is not there', () => {
  const there = Object.entries(entries).flatMap(([entry, functions]) =>
    Object.keys(functions).map((name) => `${entry} ${name}`),
  )
  expect(Object.keys(exempt).filter((name) => !there.includes(name))).toEqual([])
  expect(Object.keys(builtOn).filter((entry) => !Object.hasOwn(entries, entry))).toEqual([])
})
