import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type Agent, defineAgent, type Tool } from '@tallystick/core'
import {
  FleetError,
  type FleetOptions,
  scriptedModel,
  type ScriptedStep,
  simulateFleet,
  testTool,
} from '@tallystick/testkit'

const step: ScriptedStep = ({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? { text: 'Paid.' }
    : { toolCalls: [{ name: 'pay', input: { euros: 80 } }] }

function clerk(tools: readonly Tool[]): readonly Agent<unknown>[] {
  const model = scriptedModel(Array.from({ length: 200 }, () => step))
  return [defineAgent({ name: 'clerk', instructions: 'Pay.', model, tools })]
}

const fleet: FleetOptions = {
  agents: (_site, tools) => clerk(tools),
  tools: () => [
    testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'Paid.' }),
  ],
  start: () => ({ agent: 'clerk', input: 'Pay 80 euros.' }),
}

describe('simulateFleet', () => {
  it('plays worlds in which every law holds', async () => {
    const kinds = new Set<string>()
    const { seeds } = await simulateFleet({
      ...fleet,
      seeds: 30,
      onEnd: ({ happened }) => {
        for (const kind of happened.keys()) kinds.add(kind)
      },
    })
    expect(seeds).toBe(30)
    expect([...kinds]).toEqual(
      expect.arrayContaining(['crash', 'power_loss', 'stop', 'fork', 'approve', 'deny']),
    )
  })

  it('plays one seed to the same ledgers, byte for byte, in every process', async () => {
    const play = async (): Promise<string> => {
      const file = new URL('support/play-seed.ts', import.meta.url)
      const { stdout } = await promisify(execFile)(process.execPath, [file.pathname, '21', '22', '23'])
      return stdout
    }
    const [first, second] = await Promise.all([play(), play()])
    expect(first.length).toBeGreaterThan(2_000)
    expect(second).toBe(first)
  })

  it('finds a tool that tells of an effect before it has one, by a judge of the user', async () => {
    const hasty = simulateFleet({
      ...fleet,
      // It answers at once, and writes later: a process that dies in between has promised what never happens.
      tools: (site) => [
        testTool({
          ...{ name: 'pay', effect: 'write' },
          run: ({ toolCallId }) => {
            void site.sleep(400).then(() => site.outside.set(toolCallId, 1))
            return 'Paid.'
          },
        }),
      ],
      judge: ({ stores, outside }) =>
        stores.flatMap(({ runs }) =>
          runs
            .flat()
            .flatMap((event) =>
              event.type === 'tool_result' &&
              event.outcome === 'success' &&
              event.reused === undefined &&
              !outside.has(event.toolCallId)
                ? [{ law: 0, what: `call ${event.toolCallId} says that it has paid, and has not` }]
                : [],
            ),
        ),
    })
    await expect(hasty).rejects.toThrow(FleetError)
    await expect(hasty).rejects.toThrow(/says that it has paid[^]*smallest world[^]*Again with simulateFleet/)
  })

  it('refuses options that it does not know', async () => {
    await expect(simulateFleet({ ...fleet, seed: 3 } as never)).rejects.toThrow(/from/)
  })
})
