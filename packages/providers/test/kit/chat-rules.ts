import type { Loose } from './loose.ts'
import { halfCharacters } from './responses-rules.ts'
import { brokenSchema } from './strict-rules.ts'

/** Where a server is stricter than OpenAI, or less strict. */
export interface Strictness {
  /** What a call's id has to look like. */
  readonly id?: RegExp
  /** Roles take turns, beginning with the user, and no message of the user comes after a tool's. */
  readonly alternating?: boolean
  /** The server takes tools of any name. */
  readonly anyName?: boolean
}

/**
 * What Chat Completions refuses in a request, at OpenAI and at stricter servers, written from documentation and from
 * errors that users met; it shares nothing with the code that it checks. Answers one line for each rule that is broken.
 */
export function brokenChatRules(body: Loose, strictness: Strictness = {}): string[] {
  const broken: string[] = []
  const rule = (holds: boolean, name: string): void => void (holds || broken.push(name))
  const messages: Loose[] = body.messages
  const spoken = messages.filter(({ role }) => role !== 'system' && role !== 'developer')
  rule(spoken.length > 0, 'messages are not empty')
  messages.forEach((message, place) => {
    const at = `messages.${place}`
    if (message.role === 'system' || message.role === 'developer') {
      rule(place === 0 && /\S/.test(message.content), `${at}: instructions come first, and say something`)
    } else if (message.role === 'user') checkUser(message, at, rule)
    else if (message.role === 'assistant') checkAssistant(messages, place, strictness, rule)
    else checkTool(messages, place, rule)
  })
  const ids = messages.flatMap(({ tool_calls: calls }) => (calls ?? []).map(({ id }: Loose) => id))
  rule(new Set(ids).size === ids.length, 'tool_calls: ids are unique')
  if (strictness.alternating) checkTurns(spoken, rule)
  checkTools(body, rule)
  rule(!halfCharacters(body), 'no lone surrogates')
  return strictness.anyName ? broken.filter((why) => !why.includes(': the name ')) : broken
}

type Rule = (holds: boolean, name: string) => void

const name = /^[a-zA-Z0-9_-]{1,64}$/

function checkUser({ content }: Loose, at: string, rule: Rule): void {
  if (typeof content === 'string') return
  rule(Array.isArray(content) && content.length > 0, `${at}: content is not empty`)
  for (const part of content) {
    const url = part.image_url?.url
    const holds: { readonly [type: string]: boolean } = {
      text: typeof part.text === 'string',
      image_url: /^https?:|^data:image\/(png|jpeg|gif|webp);base64,./.test(url),
      file: /^data:application\/pdf;base64,./.test(part.file?.file_data) && !!part.file?.filename,
    }
    rule(holds[part.type] === true, `${at}: ${part.type}`)
  }
}

function checkAssistant(messages: Loose[], place: number, { id }: Strictness, rule: Rule): void {
  const { content, tool_calls: calls } = messages[place]
  const at = `messages.${place}`
  const says = typeof content === 'string' ? /\S/.test(content) : Array.isArray(content) && content.length > 0
  rule(says || calls !== undefined, `${at}: an assistant message has content or tool_calls`)
  if (calls === undefined) return
  rule(calls.length > 0, `${at}: tool_calls is not an empty list`)
  for (const call of calls) checkCall(call, at, id ?? /^.{1,64}$/s, rule)
  const behind = messages.slice(place + 1)
  const end = behind.findIndex(({ role }) => role !== 'tool')
  const answered = behind.slice(0, end < 0 ? undefined : end).map((message) => message.tool_call_id)
  const asked = calls.map((call: Loose) => call.id)
  rule(
    asked.length === answered.length && asked.every((one: string) => answered.includes(one)),
    `${at}: tool_calls must be followed by tool messages responding to each tool_call_id`,
  )
}

function checkCall(call: Loose, at: string, id: RegExp, rule: Rule): void {
  const body = call.type === 'custom' ? call.custom : call.function
  rule(name.test(body?.name), `${at}: the name ${body?.name}`)
  rule(id.test(call.id), `${at}: the id ${call.id}`)
  if (call.type === 'custom') rule(typeof body.input === 'string', `${at}: input`)
  // What the model wrote goes back as it was, whole JSON or not.
  else rule(typeof body.arguments === 'string', `${at}: arguments are a text`)
}

function checkTool(messages: Loose[], place: number, rule: Rule): void {
  const { role, content } = messages[place]
  const at = `messages.${place}`
  rule(role === 'tool', `${at}: role ${role}`)
  const text = Array.isArray(content)
    ? content.every((part) => part.type === 'text')
    : typeof content === 'string'
  rule(text, `${at}: a tool message holds text only`)
  const before = messages.slice(0, place).findLast((message) => message.role !== 'tool')
  rule(before?.tool_calls !== undefined, `${at}: role tool must be a response to a message with tool_calls`)
}

function checkTurns(spoken: Loose[], rule: Rule): void {
  rule(spoken[0]?.role === 'user', 'the first message is from the user')
  spoken.forEach(({ role }, place) => {
    const before = spoken[place - 1]?.role
    if (role === 'user')
      rule(before !== 'user' && before !== 'tool', `unexpected role user after role ${before}`)
    if (role === 'assistant') rule(before !== 'assistant', 'unexpected role assistant after role assistant')
  })
}

function checkTools(body: Loose, rule: Rule): void {
  const tools: Loose[] | undefined = body.tools
  if (tools !== undefined) rule(tools.length > 0, 'tools is not an empty list')
  const all = (tools ?? []).map((tool) => tool.function ?? tool.custom)
  rule(new Set(all.map((tool) => tool.name)).size === all.length, 'tools: names are unique')
  for (const tool of all) {
    rule(name.test(tool.name), `tools: the name ${tool.name}`)
    if (tool.strict) brokenSchema(tool.parameters).forEach((why) => rule(false, `tools: ${tool.name} ${why}`))
  }
  checkChoice(body, all, rule)
  const format = body.response_format?.json_schema
  if (format?.strict) brokenSchema(format.schema).forEach((why) => rule(false, `response_format ${why}`))
}

function checkChoice(
  { tool_choice: choice, parallel_tool_calls: parallel }: Loose,
  all: Loose[],
  rule: Rule,
): void {
  if (choice !== undefined || parallel !== undefined) rule(all.length > 0, 'tool_choice needs tools')
  const chosen = choice?.function ?? choice?.custom
  if (chosen)
    rule(
      all.some((tool) => tool.name === chosen.name),
      'tool_choice names a tool',
    )
}
