import type { Agent, Tool } from '@tallystick/core'
import { isAgentTool } from '@tallystick/core/internal'
import {
  type JsonObject,
  type ResultPart,
  toCanonicalJson,
  type ToolSignal,
  type ToolSource,
} from '@tallystick/core/vocabulary'
import { defer, from, map, type Observable, of } from 'rxjs'
import type { CaseCall, EvalCase } from './case.ts'

/** What takes the place of a tool whose call is not on record. It gets the input of the call. */
export type Stub = (
  input: JsonObject,
) => string | readonly ResultPart[] | Promise<string | readonly ResultPart[]>

/** Tools by name: `'armed'` lets the tool itself run, its effects included; a function answers in its place. */
export type Arming = { readonly [tool: string]: 'armed' | Stub }

/** The name and the input of a call, by which equal calls are found. */
export function toCallKey({ tool, input }: Pick<CaseCall, 'tool' | 'input'>): string {
  return `${tool} ${toCanonicalJson(input)}`
}

const unrecorded = (name: string): string =>
  `No result of ${name} with this input is on record, and the tool is not armed in this evaluation. Continue without it.`

/**
 * The agent as it is evaluated on a case, with the same definition: a call that the case has a result of gets that result, each
 * further equal call the next one, and the last one again. Another call gets the answer of a stub, or an error that says so, unless its
 * tool is armed. The same holds for agents that it hands over to and for those that work as its tools. Nobody is asked to approve
 * a call that runs nothing.
 */
export function serveAgent(agent: Agent<unknown>, { calls = [] }: EvalCase, arming: Arming): Agent<unknown> {
  const recorded = new Map<string, CaseCall[]>()
  for (const call of calls) {
    const key = toCallKey({ tool: call.tool, input: call.ran ?? call.input })
    recorded.set(key, [...(recorded.get(key) ?? []), call])
  }
  const next = (name: string, input: JsonObject): CaseCall | undefined => {
    const left = recorded.get(toCallKey({ tool: name, input }))
    return left !== undefined && left.length > 1 ? left.shift() : left?.[0]
  }
  const isArmed = (name: string): boolean => Object.hasOwn(arming, name) && arming[name] === 'armed'
  const run = (name: string, input: JsonObject): Observable<ToolSignal> => {
    const call = next(name, input)
    if (call) return of(endTool(call.outcome === 'success' ? 'success' : 'failed', call.content))
    const stub = Object.hasOwn(arming, name) ? arming[name] : undefined
    if (typeof stub !== 'function') return of(endTool('failed', unrecorded(name)))
    return defer(() => from(Promise.resolve(stub(input)))).pipe(map((content) => endTool('success', content)))
  }
  const tools = new WeakMap<Tool, Tool>()
  const serveTool = (tool: Tool): Tool => {
    const known = tools.get(tool)
    if (known) return known
    const served = isAgentTool(tool)
      ? { ...tool, agent: serve(tool.agent) }
      : tool.handoff !== undefined || isArmed(tool.name)
        ? tool
        : replaceTool(tool, run)
    tools.set(tool, served)
    return served
  }
  const agents = new Map<Agent<unknown>, Agent<unknown>>()
  const serve = (given: Agent<unknown>): Agent<unknown> => {
    const known = agents.get(given)
    if (known) return known
    const { approval, toolsInTurn, toolSource } = given
    const served: Agent<unknown> = {
      ...given,
      ...(approval && {
        approval: async (call) => {
          const verdict = await approval(call)
          const isDenied = typeof verdict === 'object' && 'deny' in verdict
          return isDenied || isArmed(call.name) ? verdict : 'run'
        },
      }),
      ...(toolsInTurn && { toolsInTurn: (context, state) => toolsInTurn(context, state).map(serveTool) }),
      ...(toolSource && { toolSource: serveSource(toolSource, serveTool) }),
    }
    // Known before the others are looked at: agents may name each other in a circle.
    agents.set(given, served)
    return Object.assign(served, {
      tools: given.tools.map(serveTool),
      handoffs: given.handoffs.map((target) =>
        target.agent ? { ...target, agent: serve(target.agent) } : target,
      ),
    })
  }
  return serve(agent)
}

function endTool(outcome: 'success' | 'failed', content: string | readonly ResultPart[]): ToolSignal {
  return { type: 'tool_ended', outcome, content: toParts(content) }
}

function toParts(content: string | readonly ResultPart[]): readonly ResultPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function serveSource(source: ToolSource, serve: (tool: Tool) => Tool): ToolSource {
  return {
    ...source,
    get tools() {
      return source.tools.map(serve)
    },
  }
}

/** The same tool to its model, without the effects: so it may run again, and asks nobody. */
function replaceTool(tool: Tool, run: (name: string, input: JsonObject) => Observable<ToolSignal>): Tool {
  return {
    ...tool,
    recovery: 'rerun',
    async check(input, context) {
      const verdict = await tool.check(input, context)
      return verdict.kind === 'ask' ? { kind: 'run' } : verdict
    },
    run: ({ input }) => defer(() => run(tool.name, input)),
  }
}
