import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { anthropic } from '@tallystick/providers/anthropic'
import { loadMcpConfig, mcpTools } from '@tallystick/tools/mcp'

const { servers } = await loadMcpConfig({ from: 'claude-desktop' })
await using mcp = await mcpTools({ servers })
for (const { name, state, tools, faults } of mcp.servers) console.log(name, state, tools, ...faults)

const agent = defineAgent({
  name: 'orchestrator',
  instructions: 'Answer with what your tools say.',
  model: anthropic('claude-opus-4-8'),
  tools: mcp.tools,
  approval: ({ name }) => (/delete|write|edit|move/.test(name) ? 'ask' : 'run'),
})
const runtime = createRuntime({ ledger: sqliteLedger('runs.db'), agents: [agent] })
const { status, text, pendingApprovals } = await runtime.run(
  agent,
  process.argv[2] ?? 'What do my notes say?',
).result
console.log(
  status,
  text,
  ...pendingApprovals.map((call) => `${call.name} waits: ${JSON.stringify(call.input)}`),
)
