import type { StandardSchemaV1 } from '@standard-schema/spec'
import { jsonOf } from '../../content/json-value.ts'
import type { client } from '../options/client-library.ts'
import { cleanLine } from '../text/clean-text.ts'

/** The field of a listed tool that says why it is left out; such a tool is listed for its name alone. */
const faultField = 'tallystick/fault'

type Message = Parameters<NonNullable<client.Transport['onmessage']>>[0]
type Fields = Readonly<Record<string, unknown>>

/**
 * Has a transport mend the lists of tools that come through it, before the client library checks them: it refuses a whole list for
 * one tool of another form, and the server would be lost with it. Such a tool stays by its name, with what is wrong with it, and
 * `listFaultOf` reads that. What a list may lack and says as `null` is taken as missing.
 */
export function mendToolLists(transport: client.Transport, sdk: typeof client): void {
  const asked = new Set<unknown>()
  const send = transport.send.bind(transport)
  transport.send = async (message, ...more) => {
    if ('method' in message && message.method === 'tools/list' && 'id' in message) asked.add(message.id)
    await send(message, ...more)
  }
  const mend = (message: Message): Message =>
    'id' in message && asked.delete(message.id) && 'result' in message
      ? { ...message, result: mendList(message.result, sdk) }
      : message
  let handler = transport.onmessage
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => handler,
    // The client library may read the handler to put another one around it: each mends for itself, and only the first finds the id.
    set(next: client.Transport['onmessage']) {
      handler = next && ((message, ...more) => next(mend(message), ...more))
    },
  })
}

/** What is wrong with a listed tool; `undefined` where nothing was when it came. */
export function listFaultOf({ _meta: meta }: { readonly _meta?: Fields | undefined }): string | undefined {
  const fault = meta?.[faultField]
  return typeof fault === 'string' ? fault : undefined
}

function mendList(result: Fields, sdk: typeof client): Fields {
  const { tools } = result
  const list = withoutNulls(result)
  return Array.isArray(tools) ? { ...list, tools: tools.map((tool) => mendTool(tool, sdk)) } : list
}

function mendTool(given: unknown, sdk: typeof client): Fields {
  const { Tool: schema } = sdk.specTypeSchemas
  const faultIn = (tool: Fields): string | undefined => {
    let issue: StandardSchemaV1.Issue | undefined
    try {
      jsonOf(tool)
      const checked = schema['~standard'].validate(tool)
      if (checked instanceof Promise || checked.issues === undefined) return undefined
      issue = checked.issues[0]
    } catch (error) {
      // It is nested deeper than a check of it can go.
      return cleanLine(`it cannot be read (${error instanceof Error ? error.message : String(error)})`, 300)
    }
    const path = (issue?.path ?? [])
      .map((part) => String(typeof part === 'object' ? part.key : part))
      .join('.')
    return cleanLine(`${path === '' ? 'it' : path}: ${issue?.message ?? 'it is of another form'}`, 300)
  }
  if (typeof given !== 'object' || given === null) return leftOut('', 'it is not an object')
  const { outputSchema, ...known } = withoutNulls(given as Fields)
  // A tool can be called without its output schema, and older revisions of the protocol take objects alone.
  const isKept = typeof outputSchema === 'object' && (outputSchema as Fields | null)?.['type'] === 'object'
  const whole = isKept ? { ...known, outputSchema } : known
  const tool = isKept && faultIn(whole) !== undefined ? known : whole
  const fault = faultIn(tool)
  if (fault === undefined) return tool
  const { name } = known
  return leftOut(typeof name === 'string' ? name : typeof name === 'number' ? String(name) : '', fault)
}

function leftOut(name: string, fault: string): Fields {
  return { name, inputSchema: { type: 'object' }, _meta: { [faultField]: fault } }
}

function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}
