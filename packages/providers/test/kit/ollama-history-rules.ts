import type { Loose } from './loose.ts'

/**
 * What an Ollama server refuses in a request to `/api/chat`, and what the templates of its models cannot render, written
 * from the server's own structures and from errors that its users met; it shares nothing with the code that it checks.
 * Answers one line for each rule that is broken.
 */
export function brokenRules(body: Loose): string[] {
  const broken: string[] = []
  const rule = (holds: boolean, name: string): void => void (holds || broken.push(name))
  rule(typeof body.model === 'string' && body.model !== '', 'model is required')
  rule(Number.isInteger(body.options?.num_ctx) && body.options.num_ctx > 0, 'num_ctx is set')
  rule(body.truncate === false && body.shift === false, 'nothing is cut without a word')
  const messages: Loose[] = body.messages
  const spoken = messages.filter(({ role }) => role !== 'system')
  rule(messages.findLastIndex(({ role }) => role === 'system') <= 0, 'one system message, and that first')
  // A request without messages only loads the model.
  rule(spoken.length > 0, 'there is a message')
  rule(spoken[0]?.role === 'user', 'the first message is from the user')
  spoken.forEach((message, place) => checkMessage(message, `messages.${place}`, rule))
  checkTurns(spoken, rule)
  checkCalls(spoken, rule)
  for (const tool of body.tools ?? []) checkTool(tool, rule)
  const names = (body.tools ?? []).map((tool: Loose) => tool.function.name)
  rule(new Set(names).size === names.length, 'tool names are unique')
  rule(body.format === undefined || body.tools === undefined, 'a reply held to a schema can call no tool')
  rule(
    !/\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}/i.test(
      JSON.stringify(body),
    ),
    'no lone surrogates',
  )
  return broken
}

/** The server takes any name; it has to be one that a template cannot take apart. */
const word = /^[^\s\p{C}"'<>{}]{1,64}$/u

type Rule = (holds: boolean, name: string) => void

const fields: { readonly [role: string]: readonly string[] } = {
  user: ['role', 'content', 'images'],
  assistant: ['role', 'content', 'thinking', 'tool_calls'],
  tool: ['role', 'content', 'tool_name', 'tool_call_id'],
}

function checkMessage(message: Loose, at: string, rule: Rule): void {
  const known = fields[message.role]
  rule(known !== undefined, `${at}: role ${message.role}`)
  for (const key of Object.keys(message)) rule(!!known?.includes(key), `${at}: ${message.role} holds ${key}`)
  rule(typeof message.content === 'string', `${at}: content is text`)
  const empty = message.content.trim() === '' && !message.images && !message.tool_calls
  rule(message.role === 'tool' || !empty, `${at}: says something`)
  for (const image of message.images ?? []) {
    // The server decodes it as it reads the request, and refuses all of it where it cannot.
    rule(image !== '' && Buffer.from(image, 'base64').toString('base64') === image, `${at}: base64`)
  }
  if (message.thinking !== undefined) rule(message.thinking.trim() !== '', `${at}: thinking says something`)
}

function checkTurns(spoken: Loose[], rule: Rule): void {
  spoken.forEach(({ role }, place) => {
    const before = spoken[place - 1]?.role
    if (role !== 'tool') rule(role !== before, `messages.${place}: ${role} twice in a row`)
  })
}

/** Each call has its result right after its message, in the order of the calls, by id and by name. */
function checkCalls(spoken: Loose[], rule: Rule): void {
  const ids = new Set<string>()
  spoken.forEach((message, place) => {
    const calls: Loose[] = message.tool_calls ?? []
    for (const { id, function: asked } of calls) {
      rule(word.test(id), `messages.${place}: the id ${id}`)
      rule(word.test(asked.name), `messages.${place}: the name ${asked.name}`)
      rule(!ids.has(id), `messages.${place}: ids are unique`)
      ids.add(id)
      const given = asked.arguments
      rule(typeof given === 'object' && given !== null && !Array.isArray(given), 'arguments are an object')
    }
    const results: Loose[] = []
    for (let next = place + 1; spoken[next]?.role === 'tool'; next++) results.push(spoken[next])
    if (message.role === 'tool') return
    rule(
      JSON.stringify(results.map((result) => [result.tool_call_id, result.tool_name])) ===
        JSON.stringify(calls.map((call) => [call.id, call.function.name])),
      `messages.${place}: each call has its result right after`,
    )
  })
}

function checkTool({ type, function: tool }: Loose, rule: Rule): void {
  rule(type === 'function', 'tools: type')
  rule(word.test(tool.name), `tools: the name ${tool.name}`)
  rule(tool.parameters.type === 'object', 'tools: parameters are an object')
  for (const [name, property] of Object.entries<Loose>(tool.parameters.properties))
    checkProperty(property, name, rule)
}

/** The structure that the server reads a property into; another type in it is a refusal, another key is lost. */
function checkProperty(property: Loose, at: string, rule: Rule): void {
  rule(typeof property === 'object' && property !== null && !Array.isArray(property), `${at}: is an object`)
  const known = ['type', 'anyOf', 'items', 'description', 'enum', 'properties', 'required']
  for (const key of Object.keys(property)) rule(known.includes(key), `${at}: ${key} would be lost`)
  const { type, description, anyOf = [], required = [], properties = {} } = property
  const types = [type ?? 'x'].flat()
  rule(
    types.every((one: unknown) => typeof one === 'string'),
    `${at}: type`,
  )
  rule(description === undefined || typeof description === 'string', `${at}: description`)
  rule(
    Array.isArray(required) && required.every((one: unknown) => typeof one === 'string'),
    `${at}: required`,
  )
  rule(property.enum === undefined || Array.isArray(property.enum), `${at}: enum`)
  anyOf.forEach((one: Loose, place: number) => checkProperty(one, `${at}.anyOf.${place}`, rule))
  for (const [name, inner] of Object.entries<Loose>(properties)) checkProperty(inner, `${at}.${name}`, rule)
}
