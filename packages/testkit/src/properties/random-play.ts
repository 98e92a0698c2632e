import * as fc from 'fast-check'
import type { Tool } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { ScriptedReply } from '../doubles/model.ts'
import type { CrashPoint } from '../simulation/faults.ts'
import type { ToolInputs } from './property-test.ts'
import { randomInput } from './random-input.ts'
import { mostly, type People, randomCrash, randomPeople, randomScript } from './random-trouble.ts'

export interface RandomPlay {
  readonly script: readonly ScriptedReply[]
  /** True if the model begins its script anew, so that only the agent ends the run. */
  readonly isEndless: boolean
  readonly people: People
  readonly crashes: readonly CrashPoint[]
  readonly drainAtSeq: number | undefined
  readonly randomness: number
}

const quietPeople: People = { cancelAtSeq: undefined, inputs: [], decisions: [] }

/** Any run of an agent with these tools. */
export function randomPlay(
  tools: readonly Tool[],
  given: Readonly<Record<string, ToolInputs>>,
): fc.Arbitrary<RandomPlay> {
  const inputs = tools.map(({ name, inputSchema }) => {
    const own = given[name]?.inputs
    return [name, own === undefined ? randomInput(inputSchema) : toArbitrary(own)] as const
  })
  // What comes first is shrunk first: an example without trouble is easier to read than one with a short script.
  return fc.record({
    crashes: mostly<readonly CrashPoint[]>(
      1,
      fc.constant([]),
      fc.array(randomCrash, { minLength: 1, maxLength: 3 }),
    ),
    drainAtSeq: mostly<number | undefined>(6, fc.constant(undefined), fc.integer({ min: 1, max: 60 })),
    people: mostly(2, fc.constant(quietPeople), randomPeople),
    isEndless: fc.integer({ min: 0, max: 9 }).map((number) => number === 9),
    script: randomScript(Object.fromEntries(inputs)),
    randomness: fc.noShrink(fc.integer({ min: 0, max: 0xffffffff })),
  })
}

function toArbitrary(inputs: NonNullable<ToolInputs['inputs']>): fc.Arbitrary<JsonObject> {
  return Array.isArray(inputs)
    ? fc.constantFrom(...(inputs as readonly JsonObject[]))
    : (inputs as fc.Arbitrary<JsonObject>)
}

export async function check(
  plays: fc.Arbitrary<RandomPlay>,
  property: (play: RandomPlay) => Promise<void>,
  parameters: fc.Parameters<[RandomPlay]>,
): Promise<fc.RunDetails<[RandomPlay]>> {
  return await fc.check(fc.asyncProperty(plays, property), parameters)
}
