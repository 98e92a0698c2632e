import type { RunId } from '@tallystick/core'
import { type Engine, startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import { findOpenRoot, readStart } from '@tallystick/core/internal'
import type { Fleet, SiteWorker, WorkingSite } from '@tallystick/testkit'
import { openQueue, type Queue, queueEngine } from '../../packages/engines/test/queue-engine.ts'
import { createAgents, createTools, drawStart, prices } from './agents.ts'

/** The fleet of the project: an engine that asks the ledger, or one that holds wakes itself, and agents that do whatever an agent can. */
export function createFleet(): Fleet {
  return {
    agents: createAgents,
    tools: createTools,
    start: drawStart,
    prices,
    contextOf: ({ owner }) => ({ owner }),
    changeInput: (name) => (name === 'helper' ? undefined : { do: 'succeed', ms: 3, edited: true }),
    expects: (error) => error instanceof Error && error.message === 'a broken guardrail',
    work: startEngineWorker,
  }
}

/** The servers of engines, by world and store. */
const queues = new WeakMap<object, Map<string, Queue>>()

function openQueueOf({ world, store }: WorkingSite): Queue {
  const ofWorld = queues.get(world) ?? new Map<string, Queue>()
  queues.set(world, ofWorld)
  const queue = ofWorld.get(store) ?? openQueue()
  ofWorld.set(store, queue)
  return queue
}

function createEngine(site: WorkingSite): Engine {
  const { world, actor, ledger, clock } = site
  if (world.chance('engine')() < 0.6) return pollingEngine({ ledger, clock, report: () => {} })
  const engine = queueEngine(openQueueOf(site), { clock: world.clockOf(actor) })
  return {
    ...engine,
    // What was sent arrives, also where the process dies before it has the answer.
    wake: async (wake) => {
      const recorded = new Promise<void>((resolve) => {
        world.after(world.drawDelay(actor, 0, 50), undefined, () => void engine.wake(wake).then(resolve))
      })
      await recorded
      await world.sleep(world.drawDelay(actor, 0, 50), actor)
    },
  }
}

/** How often the ledger is asked beside an engine, in milliseconds. */
const sweptEachMs = 600_000

/** Wakes child runs whose parents have given up on them: a ledger knows that they are due, and no engine does. */
function sweep(site: WorkingSite, engine: Engine): void {
  const { ledger, clock } = site
  const look = async (): Promise<void> => {
    for await (const { runId } of ledger.due({ before: clock.now() })) {
      const isOrphan = (await readStart(ledger, runId))?.parent?.relation === 'child'
      if (isOrphan && (await findOpenRoot(ledger, runId)) === runId) await engine.wake({ runId })
    }
  }
  clock.schedule(sweptEachMs, () => {
    // At the next look the ledger may answer.
    void look().catch(() => {})
    sweep(site, engine)
  })
}

function startEngineWorker(site: WorkingSite): SiteWorker {
  const engine = createEngine(site)
  const { runtime, clock } = site
  if (engine.name === 'queue') sweep(site, engine)
  const worker = startWorker({ runtime, engine, clock })
  return {
    wake: async (runId: RunId) => await engine.wake({ runId }),
    stop: async (graceMs) => await (await worker).stop(graceMs),
  }
}
