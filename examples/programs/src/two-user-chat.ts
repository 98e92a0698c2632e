// A web chat in which two people and an agent talk, each under their own name, in any number of windows.
//   node two-user-chat.ts   prints a link for each of them
import { readFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { createServer } from '@tallystick/server'
import { nodeHandler } from '@tallystick/server/node'
import { scriptedModel } from '@tallystick/testkit'

// A script plays the model: use anthropic('…') or openai('…') instead.
const model = scriptedModel(
  Array.from({ length: 1_000 }, () => ({ messages, instructions }) => {
    const said = messages.flatMap((message) => (message.role === 'user' ? message.parts : []))
    const last = said.at(-1)
    const text = last?.type === 'text' ? last.text : ''
    return {
      text: `The script was told "${instructions}", and has read ${said.length} messages, the last: ${text}`,
    }
  }),
)
const agent = defineAgent<unknown, { readonly name: string }>({
  name: 'host',
  // Who speaks is what the server knows, never what a message says.
  instructions: ({ name }) => `You talk with ${name}.`,
  model,
})
const ledger = sqliteLedger('two-user-chat.db')
const runtime = createRuntime({ ledger, agents: [agent] })

// A person is who has the link; a real application has accounts, and checks its own session here.
const people = new Map<string, string>(['Ada', 'Ben'].map((name) => [crypto.randomUUID(), name]))
const nameOf = (cookie = '') => people.get(/(?:^|; )person=([\w-]+)/.exec(cookie)?.[1] ?? '')
const api = createServer({
  runtime,
  agents: [agent],
  basePath: '/api',
  context: ({ owner }) => ({ name: owner }),
  authorize({ headers }) {
    const name = nameOf(headers.get('cookie') ?? '')
    return name === undefined ? undefined : { name, sees: { sessions: ['kitchen'] }, may: ['start'] }
  },
})
const answerApi = nodeHandler(api)
const page = readFileSync(new URL('two-user-chat.html', import.meta.url))

const http = createHttp((request, response) => {
  if (request.url?.startsWith('/api/')) return answerApi(request, response)
  const token = request.url?.split('?as=')[1] ?? ''
  const isKnown = people.has(token) || nameOf(request.headers.cookie) !== undefined
  if (people.has(token))
    response.setHeader('set-cookie', `person=${token}; HttpOnly; SameSite=Strict; Path=/`)
  response.writeHead(isKnown ? 200 : 401, { 'content-type': 'text/html; charset=utf-8' })
  response.end(isKnown ? page : 'Open the link with your name.')
}).listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () => {
  const { port } = http.address() as AddressInfo
  for (const [token, name] of people) console.log(`${name}: http://127.0.0.1:${port}/?as=${token}`)
})
