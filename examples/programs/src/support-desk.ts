// A support desk: the front desk hands over to billing, which has a researcher read the orders on an MCP server.
//   node support-desk.ts FOLDER 'My order 17 came twice.'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { type Agent, agentTool, createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { type ScriptedStep, scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { mcpTools } from '@tallystick/tools/mcp'
import { z } from 'zod'

const [folder = 'orders', question = 'My order 17 came twice.'] = process.argv.slice(2)

// A real server of the protocol, over standard input and output.
const program = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'))
const mcp = await mcpTools({ servers: { orders: { command: process.execPath, args: [program, folder] } } })
const reading = mcp.tools.filter(({ name }) => name.endsWith('read_text_file'))

const refund = defineTool({
  name: 'refund',
  description: 'Pays a customer money back.',
  input: z.object({ order: z.number(), euros: z.number() }),
  effect: 'write',
  approval: ({ euros }) => (euros > 20 ? `${euros} euros` : false),
  execute: ({ order, euros }) => `${euros} euros were paid back for order ${order}`,
})

// Scripts play the models: use anthropic('…') or openai('…') instead.
const call = (name: string, input = {}): ScriptedStep => ({ toolCalls: [{ name, input }] })
const say: ScriptedStep = ({ messages }) => {
  const last = JSON.stringify(messages.at(-1))
  return { text: `The script says: ${/\d+ euros[^"\\]*|[^"]*denied[^"]*/.exec(last)?.[0]}.` }
}
const define = (name: string, steps: ScriptedStep[], more: object): Agent =>
  defineAgent({
    name,
    description: `The ${name}.`,
    instructions: 'Help.',
    model: scriptedModel(steps),
    ...more,
  })
const read = call(reading[0]!.name, { path: `${folder}/17.txt` })
const researcher = define('researcher', [read, say], { tools: reading })
const lookUp = call('researcher', { task: 'What did order 17 cost, and was it sent twice?' })
const steps = [lookUp, call('refund', { order: 17, euros: 40 }), say]
const billing = define('billing', steps, { tools: [agentTool(researcher), refund] })
const desk = define('front desk', [call('transfer_to_billing')], { handoffs: [billing] })

const ledger = sqliteLedger('support-desk.db')
const run = createRuntime({ ledger, agents: [desk] }).run(desk, question)
const terminal = createInterface({ input: process.stdin, output: process.stdout })
let result = await run.result
while (result.status !== 'done') {
  for (const asked of result.pendingApprovals) {
    const input = JSON.stringify(asked.input)
    const answer = await terminal.question(`May the desk run ${asked.name} ${input}? yes or no: `)
    if (answer.trim() === 'yes') await run.approve(asked, { by: 'team lead' })
    else await run.deny(asked, { by: 'team lead', reason: 'Not without a photo.' })
  }
  result = await run.result
}
console.log(`${result.agent}: ${result.text}`)
terminal.close()
await mcp.close()
await ledger.close()
