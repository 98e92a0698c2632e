import type { Agent } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import type { Hono } from 'hono'
import { includes } from '../access/principal.ts'
import { json, requireAgent, type RequestScope, type Served } from './served.ts'

/** Adds the routes of agents: which ones a caller can start. */
export function addAgents(app: Hono<RequestScope>, served: Served): void {
  app.get('/agents', (context) => {
    const { sees } = context.get('principal')
    const isSeen = (name: string): boolean => sees === 'everything' || includes(sees.agents, name)
    const agents = [...served.agents.values()].filter(({ name }) => isSeen(name))
    return json({ agents: agents.map(agentView) })
  })
  app.get('/agents/:agent', (context) =>
    json(agentView(requireAgent(served, context.get('principal'), context.req.param('agent')))),
  )
}

/** What a caller reads of an agent. Its instructions and settings stay with the application. */
function agentView({ name, description, tools, limits }: Agent<unknown>): object {
  return {
    name,
    ...omitUndefined({ description }),
    tools: tools.map((tool) => ({ name: tool.name, description: tool.description, effect: tool.effect })),
    limits,
  }
}
