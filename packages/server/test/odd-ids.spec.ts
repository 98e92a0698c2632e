import { request } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { documentAt, exampleOf, operationsOf } from './kit/described.ts'
import { openOffice, payingAgent, type Office } from './kit/office.ts'

const operations = operationsOf(await documentAt(''))

/** A thorough run tries all of them, a quick one some. */
function tried(odd: readonly string[]): readonly string[] {
  const each = effort({ quick: 5, thorough: 1 })
  return odd.filter((_, index) => index % each === 0)
}

/** Ids as the path of a request line has them. */
const inPaths = tried([
  '%',
  '%zz',
  '%25',
  '%2525',
  '%00',
  '%0d%0a',
  '%2e%2e',
  '..%2f..%2fetc',
  '%5c..%5c',
  '%ff%fe',
  '%ed%a0%80',
  '%E6%97%A5%F0%9F%A6%8A',
  '%20',
  '%7b%7d',
  "';--",
  '__proto__',
  'constructor',
  'a'.repeat(5_000),
  '%F0%9F%A6%8A'.repeat(400),
  '01a20ad2-04d4-72fd-99e7-7861fc19641d%00',
])

/** Values of a field of a body. */
const inBodies = tried([
  '',
  ' ',
  '%',
  '..',
  '../../etc/passwd',
  '\0',
  'a\0b',
  '\ud800',
  '日本語🦊',
  'a'.repeat(5_000),
  '🦊'.repeat(3_000),
  '__proto__',
  'a\r\nb: c',
])

/** A request whose path is sent unchanged. */
async function send(
  office: Office,
  { method, path, body }: { readonly method: string; readonly path: string; readonly body?: unknown },
): Promise<{ readonly status: number; readonly type: string; readonly text: string }> {
  const headers = { authorization: 'Bearer boss', 'content-type': 'application/json' }
  const options = {
    host: '127.0.0.1',
    port: office.listening.port,
    method: method.toUpperCase(),
    path,
    headers,
  }
  return await new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      const { statusCode: status = 0, headers: answered } = response
      const type = answered['content-type'] ?? ''
      // A stream without end was accepted: it is about something that exists.
      if (type.startsWith('text/event-stream')) {
        resolve({ status, type, text: '' })
        response.destroy()
        return
      }
      void textOf(response).then((text) => resolve({ status, type, text }), reject)
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Demands that a request was answered, or refused in the words of its protocol. */
function demandAnswer(asked: object, { status, type, text }: Awaited<ReturnType<typeof send>>): void {
  expect({ ...asked, status, text }).toMatchObject(status < 500 ? asked : { status: 'below 500' })
  if (status < 400) return
  const isJson = /^application\/(problem\+)?json/.test(type)
  expect({ ...asked, isJson }).toMatchObject({ ...asked, isJson: true })
  const answer = JSON.parse(text) as Record<string, unknown>
  const refusal = answer['code'] ?? answer['error']
  expect({ ...asked, refusal }).toMatchObject({ ...asked, refusal: expect.anything() as unknown })
}

/** The paths to every text in a value. */
function textsIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value === 'string') return [path]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => textsIn(each, [...path, name]))
}

function withText(value: unknown, [name, ...rest]: readonly string[], text: string): unknown {
  if (name === undefined) return text
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<
    string,
    unknown
  >
  copy[name] = withText(copy[name], rest, text)
  return copy
}

describe('an odd id', () => {
  const naming = operations.filter(({ path }) => path.includes('{'))

  it.each(naming.map((each) => [`${each.method} ${each.path}`, each] as const))(
    'in the path is refused with a problem: %s',
    async (_, { method, path, operation }) => {
      const office = await openOffice({ agents: [payingAgent('cashier')] })
      for (const [placeholder] of path.matchAll(/\{\w+\}/g)) {
        for (const id of inPaths) {
          const place = path
            .replace(placeholder, id)
            .replace('{agent}', 'cashier')
            .replaceAll(/\{\w+\}/g, 'x')
          const answer = await send(office, { method, path: place, body: exampleOf(operation) })
          demandAnswer({ place: place.slice(0, 200) }, answer)
        }
      }
      for (const place of [
        '/runs/../../etc',
        '/%2e%2e/agents',
        '//agents',
        '/agents/../agents',
        '/runs/%2e%2e/x',
      ])
        demandAnswer({ place }, await send(office, { method, path: place }))
      expect(office.reported).toEqual([])
    },
  )

  const saying = operations.filter(({ operation }) => exampleOf(operation) !== undefined)
  it.each(saying.map((each) => [`${each.method} ${each.path}`, each] as const))(
    'or any odd text in the body is taken or refused: %s',
    async (_, { method, path, operation }) => {
      const office = await openOffice({ agents: [payingAgent('cashier')] })
      const run = await office.start('boss')
      const place = path.replace('{agent}', 'cashier').replace('{run}', run)
      const example = exampleOf(operation)
      for (const field of textsIn(example)) {
        for (const text of inBodies) {
          const answer = await send(office, { method, path: place, body: withText(example, field, text) })
          demandAnswer({ place, field: field.join('.'), odd: text.slice(0, 40) }, answer)
        }
      }
      expect(office.reported).toEqual([])
    },
  )

  it.each(operations.filter(({ method }) => method === 'get').map((each) => [each.path, each] as const))(
    'or any odd value in the query is refused: %s',
    async (_, { path, operation }) => {
      const office = await openOffice({ agents: [payingAgent('cashier')] })
      const run = await office.start('boss')
      const names = operation.parameters
        .filter((parameter) => parameter.in === 'query')
        .map(({ name }) => name)
      for (const name of names) {
        for (const value of [...inPaths, '-1', '1e999', 'NaN', '9007199254740993']) {
          const place = path
            .replace('{run}', run)
            .replace('{agent}', 'cashier')
            .replaceAll(/\{\w+\}/g, 'x')
          const answer = await send(office, { method: 'get', path: `${place}?${name}=${value}` })
          demandAnswer({ place, name, value: value.slice(0, 60) }, answer)
        }
      }
      expect(office.reported).toEqual([])
    },
  )
})
