// The client that the conformance suite of MCP starts, once for each scenario: `mcpTools` connects to the server whose URL is
// the last argument, and each of its tools is called once.
import { mcpTools } from '@tallystick/tools/mcp'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { answeredDiscovery } from './answered-discovery.ts'
import { clicksThrough } from './clicks-through.ts'
import { sampleInput } from './sample-input.ts'

interface Scenario {
  readonly client_id?: string
  readonly client_secret?: string
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[]
}

const { MCP_CONFORMANCE_SCENARIO: name = '', MCP_CONFORMANCE_CONTEXT: given = '{}' } = process.env
const revision = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION']
const scenario = JSON.parse(given) as Scenario
const url = process.argv.at(-1) ?? ''
const user = name.startsWith('auth/') ? clicksThrough(scenario) : {}

await using mcp = await mcpTools({
  servers: {
    it: {
      url,
      era: revision === '2026-07-28' ? '2026-07-28' : 'legacy',
      fetch: answeredDiscovery(fetch),
      required: !name.startsWith('auth/'),
      // Only a hang takes so long: no scenario is judged by how busy the machine is.
      startMs: 110_000,
      timeoutMs: 110_000,
      ...user,
    },
  },
  elicit: () => ({ action: 'accept', content: {} }),
  sample: () => ({ model: 'none', role: 'assistant', content: { type: 'text', text: 'Paris.' } }),
})
for (const { faults } of mcp.servers) for (const fault of faults) console.error(fault)
const calls =
  scenario.toolCalls ??
  mcp.tools.map(({ origin, inputSchema }) => ({
    name: origin?.name ?? '',
    arguments: sampleInput(inputSchema),
  }))
for (const call of calls) {
  // What a server refuses is a scenario, too.
  await mcp.call('it', call.name, call.arguments).then(
    (content) => console.log(JSON.stringify(content)),
    (error: unknown) => console.error(String(error)),
  )
}
