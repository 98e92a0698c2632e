import type { RunId } from '@tallystick/core'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import type { Fleet, SiteWorker, WorkingSite } from '@tallystick/testkit'
import { createAgents, createTools, drawStart, prices } from './agents.ts'

/** The fleet of the project: its own engine, and agents that do whatever an agent can. */
export function createFleet(): Fleet {
  return {
    agents: createAgents,
    tools: createTools,
    start: drawStart,
    prices,
    contextOf: ({ owner }) => ({ owner }),
    changeInput: (name) => (name === 'helper' ? undefined : { do: 'succeed', ms: 3, edited: true }),
    expects: (error) => error instanceof Error && error.message === 'a broken guardrail',
    work: startPollingWorker,
  }
}

function startPollingWorker({ runtime, ledger, clock }: WorkingSite): SiteWorker {
  const engine = pollingEngine({ ledger, clock, report: () => {} })
  const worker = startWorker({ runtime, engine })
  return {
    wake: async (runId: RunId) => await engine.wake({ runId }),
    stop: async (graceMs) => await (await worker).stop(graceMs),
  }
}
