// What a model reads of each built-in tool, and what the runtime goes by.
import { join } from 'node:path'
import { calculator } from '@tallystick/tools/calculator'
import { filesTools } from '@tallystick/tools/files'
import { httpFetch } from '@tallystick/tools/http-fetch'
import { shell } from '@tallystick/tools/shell'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { memoryTools, sqliteMemory } from '@tallystick/tools/memory'
import { skills } from '@tallystick/tools/skills'
import { memoryLedger } from '@tallystick/core'
import { readResult, searchableTools, todoList } from '@tallystick/tools'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sandbox } from './files/sandbox.ts'

const value = { type: ['string', 'number', 'boolean', 'null'] }
const url = {
  ...{ type: 'string', maxLength: 8_000 },
  description: 'An http: or https: URL, without user and password.',
}
const reading = { effect: 'read', recovery: 'rerun', approval: 'never' }
const ofKeys = (required: readonly string[], properties: object) => ({
  ...{ type: 'object', required, additionalProperties: false, properties },
})

const raw = { type: 'boolean', description: 'Shows the HTML of a page instead of Markdown. Default false.' }

describe('what a model and the runtime read', () => {
  it('of http_fetch that only reads', () => {
    expect(httpFetch()).toMatchObject({
      ...reading,
      name: 'http_fetch',
      description:
        'Sends an HTTP request (GET) and answers { url, status, headers, body } as JSON; a web page is shown as Markdown. Use it to read what is at a URL, or to ask an HTTP API. An answer of status 400 or more is an answer too.',
      timeoutMs: 16_000,
    })
    expect(httpFetch().inputSchema).toEqual(ofKeys(['url'], { url, raw }))
    expect(httpFetch({ methods: ['GET', 'HEAD'] }).inputSchema).toEqual(
      ofKeys(['url'], { url, raw, method: { enum: ['GET', 'HEAD'], description: 'Default GET.' } }),
    )
  })

  it('of http_fetch that may write', () => {
    const tool = httpFetch({ methods: ['POST', 'GET'], origins: ['https://a.example'], timeoutMs: 500 })
    expect(tool).toMatchObject({ effect: 'write', recovery: 'report', approval: 'never', timeoutMs: 1_500 })
    expect(tool.description).toContain('(POST, GET)')
    expect(tool.description).toContain('an HTTP API. Only https://a.example can be reached. An answer')
    const body = { type: 'string', maxLength: 200_000, description: 'The request body.' }
    const contentType = {
      type: 'string',
      pattern: '^[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+(; ?charset=[A-Za-z0-9-]+)?$',
      description: 'The media type of the body. Default application/json.',
    }
    const method = { enum: ['POST', 'GET'], description: 'Default POST.' }
    expect(tool.inputSchema).toEqual(ofKeys(['url'], { url, raw, method, body, contentType }))
    expect(httpFetch({ methods: ['PUT'] }).inputSchema).toEqual(
      ofKeys(['url'], { url, raw, body, contentType }),
    )
  })

  it('of sql_query', () => {
    expect(sqlQuery({ path: 'shop.db' })).toMatchObject({
      ...reading,
      name: 'sql_query',
      description:
        'Runs one read-only SQL statement on a SQLite database and answers { columns, rows } as JSON. Use it to look things up and to count and sum them. To see which tables there are, query sqlite_schema (SELECT name, sql FROM sqlite_schema). At most 200 rows are shown, so aggregate and filter in SQL.',
      timeoutMs: 45_000,
    })
    expect(sqlQuery({ path: 'shop.db', maxRows: 7 }).description).toContain('At most 7 rows are shown')
    expect(sqlQuery({ path: 'shop.db', timeoutMs: 500 }).timeoutMs).toBe(36_000)
    expect(sqlQuery({ path: 'shop.db' }).inputSchema).toEqual(
      ofKeys(['sql'], {
        sql: {
          ...{ type: 'string', minLength: 1, maxLength: 20_000 },
          description:
            'One SELECT, WITH … SELECT, VALUES or EXPLAIN QUERY PLAN statement in the SQL of SQLite.',
        },
        parameters: {
          anyOf: [
            { type: 'array', items: value },
            { type: 'object', additionalProperties: value },
          ],
          description: 'Values for ? in order as an array, or for :name, @name and $name as an object.',
        },
      }),
    )
  })

  it('of calculator', () => {
    expect(calculator()).toMatchObject({
      ...reading,
      name: 'calculator',
      description:
        'Calculates exactly, with decimals of any size. Use it for every calculation beyond the trivial, instead of calculating yourself.',
    })
    expect(calculator().inputSchema).toEqual(
      ofKeys(['expression'], {
        expression: {
          ...{ type: 'string', minLength: 1, maxLength: 1_000 },
          description:
            'For example (1_250 * 1.19 - 3) / 4. Operators + - * / ^ (whole exponents), % is the remainder, with the sign of the dividend. Functions: abs(x), ceil(x), floor(x), max(x, …), min(x, …), round(x, places), sqrt(x), sum(x, …). round takes halves away from zero. No thousands separators but _, no units, no variables.',
        },
      }),
    )
  })

  it('of the tools over files and of the shell', async () => {
    const root = import.meta.dirname
    const programs = { sh: { about: 'Runs a script.', args: [['-c']] }, true: { read: true } }
    const tools = [...filesTools({ root, write: true }), shell({ root, programs })]
    const read = tools.map(({ name, description, inputSchema, effect, approval, recovery, timeoutMs }) => ({
      ...{ name, description, inputSchema, effect, recovery, timeoutMs },
      approval: typeof approval === 'function' ? 'a function' : approval,
    }))
    await expect(`${JSON.stringify(read, null, 2)}\n`).toMatchFileSnapshot('golden/definitions.json')
  })

  it('of the tools that keep, look up and search', async () => {
    const ledger = memoryLedger()
    const box = sandbox()
    onTestFinished(() => box.remove())
    box.put({ 'forms/SKILL.md': '---\nname: forms\ndescription: Fills in forms.\n---\nFill.' })
    const store = sqliteMemory(join(box.root, 'memories.db'))
    onTestFinished(() => store.close())
    const look = httpFetch()
    const { tools: searching } = searchableTools([look])
    const tools = [
      ...[todoList({ ledger }), readResult({ ledger }), skills({ from: box.root }).tool],
      ...memoryTools({ store, ledger, per: 'session' }),
      ...[searching[0]!, sqlQuery({ connectionString: 'postgres://shop.example/a' })],
    ]
    const read = tools.map(
      ({ name, description, inputSchema, effect, recovery, timeoutMs, maxResultChars }) => ({
        ...{ name, description, inputSchema, effect, recovery, timeoutMs, maxResultChars },
      }),
    )
    await expect(`${JSON.stringify(read, null, 2)}\n`).toMatchFileSnapshot('golden/keeping-definitions.json')
  })

  it('of any of them in the words of the application, where it gives some', () => {
    const own = { name: 'look_up', description: 'Looks up orders.' }
    expect(httpFetch(own)).toMatchObject(own)
    expect(sqlQuery({ ...own, path: 'shop.db' })).toMatchObject(own)
    expect(sqlQuery({ ...own, connectionString: 'postgres://shop.example/a' })).toMatchObject(own)
    expect(httpFetch({ approval: 'always' }).approval).toBe('always')
  })
})
