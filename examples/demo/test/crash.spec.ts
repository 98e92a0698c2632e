import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import type { Bench } from './bench.ts'
import { openBench } from './bench.ts'
import type { DeathAtWrite } from './die-at-write.ts'
import type { Ending, ProgramOptions } from './program.ts'

/** Kills the process at a write; without a place to die it only counts the writes. */
function dying(death: Partial<DeathAtWrite> & Pick<DeathAtWrite, 'on'>): ProgramOptions {
  return {
    environment: { DIE_AT_WRITE: JSON.stringify(death) },
    preload: [join(import.meta.dirname, 'die-at-write.ts')],
  }
}

/** Every transaction of the ledger: what is durable ends with one. */
const commits = '^COMMIT'
const orderInsert = '^INSERT INTO orders'

async function countOf(counted: Promise<Ending>): Promise<number> {
  const { code, stderr } = await counted
  expect(code).toBe(0)
  return Number(/counted: (\d+)\n$/.exec(stderr)?.[1])
}

/** `steps` places spread over 1 to `count`, by turns before and after the write. */
function placesIn(count: number, steps: number): readonly Pick<DeathAtWrite, 'at' | 'when'>[] {
  return Array.from({ length: steps }, (_, step) => ({
    at: Math.max(1, Math.round(((step + 0.5) * count) / steps)),
    when: step % 2 === 0 ? 'before' : 'behind',
  }))
}

/** Resumes the last run to its end, which is the answer that a run without a crash gives. */
async function resumeToTheEnd(bench: Bench, orderId: number): Promise<void> {
  const { code, stdout } = await bench.tallystick('resume', ['latest', '--yes', '--json'], {})
  const { name, units, quantity, sku } = bench.facts()
  expect(code).toBe(0)
  const result: unknown = JSON.parse(stdout)
  expect(result).toMatchObject({ status: 'done', reason: 'answered', turns: 5, toolCalls: 5 })
  expect(result).toMatchObject({ text: expect.stringContaining(`${name} (${sku}): ${units} units`) })
  expect(result).toMatchObject({
    text: expect.stringContaining(`Order ${orderId} is placed: ${quantity} of ${sku}`),
  })
}

/** Every law holds on every run, each run is done, and each has placed its order once. */
async function expectSound(bench: Bench, runs: number): Promise<void> {
  const verified = await bench.tallystick('verify')
  expect(verified.code).toBe(0)
  expect(verified.stdout).toMatch(new RegExp(`^ledger  ok  ${runs} runs?, `, 'm'))
  const orders = bench.orders()
  expect(orders).toHaveLength(runs)
  expect(new Set(orders.map(({ idempotency_key: key }) => key)).size).toBe(runs)
}

describe.concurrent('a run of the demo that is killed with SIGKILL', () => {
  it('continues from wherever it stood, and ends as it would have', async () => {
    await using bench = await openBench()
    // Its first transaction makes the sales database, the second the run: before that there is nothing to resume.
    const count = await countOf(bench.demo(['--yes'], dying({ on: commits })))
    const places = placesIn(count - 2, tries(6))
    for (const [place, { at, when }] of places.entries()) {
      const killed = await bench.demo(['--yes'], dying({ on: commits, at: at + 2, when }))
      expect(killed).toMatchObject({ signal: 'SIGKILL' })
      await resumeToTheEnd(bench, place + 2)
    }
    await expectSound(bench, places.length + 1)
  })

  it.each([
    // Not placed yet: the order book says so, and the call is started again.
    { when: 'before', placed: 0, starts: 2 },
    // The order was placed and no process recorded it: the order book says so, and nothing is started.
    { when: 'behind', placed: 1, starts: 1 },
  ] as const)('orders once when it dies $when the order', async ({ when, placed, starts }) => {
    await using bench = await openBench()
    const killed = await bench.demo(['--yes'], dying({ on: orderInsert, at: 1, when }))
    expect(killed).toMatchObject({ signal: 'SIGKILL' })
    expect(bench.orders()).toHaveLength(placed)
    await resumeToTheEnd(bench, 1)
    await expectSound(bench, 1)
    const { stdout } = await bench.tallystick('export')
    expect(stdout.match(/"type":"tool_started".*"name":"place_order"/g)).toHaveLength(starts)
  })

  it('continues when the process that took it over is killed as well, again and again', async () => {
    await using bench = await openBench()
    await bench.demo([])
    const resume = ['latest', '--yes']
    for (const at of [1, 2, 3]) {
      const killed = await bench.tallystick('resume', resume, dying({ on: commits, at, when: 'behind' }))
      expect(killed).toMatchObject({ signal: 'SIGKILL' })
    }
    await resumeToTheEnd(bench, 1)
    await expectSound(bench, 1)
  })
})
