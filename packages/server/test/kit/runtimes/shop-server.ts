import { createRuntime, memoryLedger } from '@tallystick/core'
import { createServer, type Server } from '@tallystick/server'
import { payingAgent } from '../paying-agent.ts'

/** A server on a ledger in memory, with an agent that asks before it pays. */
export function openShopServer(): Server {
  const [ledger, agents] = [memoryLedger(), [payingAgent()]]
  return createServer({
    ledger,
    agents,
    inspector: true,
    runtime: createRuntime({ ledger, agents }),
    authorize: (request) =>
      request.headers.get('authorization') === 'Bearer boss'
        ? { name: 'boss', sees: 'everything' }
        : undefined,
  })
}
