import type { Loose } from './loose.ts'
import { brokenSchema } from './strict-rules.ts'

/** What a request may lean on, when the service keeps the conversation: the ids of the calls that it knows. */
export interface Kept {
  readonly calls?: readonly string[]
}

/**
 * What OpenAI's Responses API refuses in a request, written from the wire's documentation and from errors that its users
 * met; it shares nothing with the code that it checks. Answers one line for each rule that is broken.
 */
export function brokenResponsesRules(body: Loose, kept: Kept = {}): string[] {
  const broken: string[] = []
  const rule = (holds: boolean, name: string): void => void (holds || broken.push(name))
  const input: Loose[] = body.input
  rule(Array.isArray(input) && input.length > 0, 'input is not empty')
  rule(!(body.previous_response_id && body.conversation), 'previous_response_id or conversation, not both')
  if (body.previous_response_id || body.conversation) rule(body.store === true, 'state needs store')
  if (body.instructions !== undefined) rule(/\S/.test(body.instructions), 'instructions are not blank')
  if (body.max_output_tokens !== undefined)
    rule(body.max_output_tokens >= 16, 'max_output_tokens is at least 16')
  input.forEach((item, place) => checkItem(item, `input.${place}`, rule))
  checkReasoning(body, rule)
  checkCalls(input, kept, rule)
  checkIds(input, rule)
  checkTools(body, rule)
  checkFormat(body, rule)
  rule(!halfCharacters(body), 'no lone surrogates')
  return broken
}

type Rule = (holds: boolean, name: string) => void

const name = /^[a-zA-Z0-9_-]{1,64}$/
const outputs: { readonly [call: string]: string } = {
  function_call: 'function_call_output',
  custom_tool_call: 'custom_tool_call_output',
}

function checkItem(item: Loose, at: string, rule: Rule): void {
  if (item.type === undefined || item.type === 'message') return checkMessage(item, at, rule)
  rule(item.type !== 'item_reference', `${at}: no item_reference`)
  if (outputs[item.type]) {
    rule(name.test(item.name), `${at}: name`)
    rule(/^.{1,64}$/s.test(item.call_id), `${at}: call_id`)
    if (item.type === 'function_call') rule(typeof item.arguments === 'string', `${at}: arguments are a text`)
    else rule(typeof item.input === 'string', `${at}: input is a text`)
  }
  if (Object.values(outputs).includes(item.type)) {
    if (typeof item.output === 'string') return
    rule(Array.isArray(item.output) && item.output.length > 0, `${at}: output`)
    for (const part of item.output) checkInputPart(part, at, rule)
  }
}

function checkMessage(item: Loose, at: string, rule: Rule): void {
  rule(['user', 'assistant', 'system', 'developer'].includes(item.role), `${at}: role`)
  if (typeof item.content === 'string') return rule(item.role === 'user', `${at}: content of a user`)
  rule(Array.isArray(item.content) && item.content.length > 0, `${at}: content is not empty`)
  for (const part of item.content) {
    if (item.role === 'user') checkInputPart(part, at, rule)
    else {
      rule(['output_text', 'refusal'].includes(part.type), `${at}: an assistant says no ${part.type}`)
      rule(typeof part[part.type === 'refusal' ? 'refusal' : 'text'] === 'string', `${at}: its text`)
      if (item.id) rule(part.type === 'refusal' || Array.isArray(part.annotations), `${at}: annotations`)
    }
  }
}

function checkInputPart(part: Loose, at: string, rule: Rule): void {
  switch (part.type) {
    case 'input_text':
      return rule(typeof part.text === 'string', `${at}: text`)
    case 'input_image':
      return rule(
        /^https?:|^data:image\/(png|jpeg|gif|webp);base64,./.test(part.image_url),
        `${at}: image_url`,
      )
    case 'input_file': {
      const data = /^data:application\/pdf;base64,./.test(part.file_data) && !!part.filename
      return rule(part.file_url ? /^https?:/.test(part.file_url) : data, `${at}: file`)
    }
    default:
      return rule(false, `${at}: a user says no ${part.type}`)
  }
}

function checkReasoning(body: Loose, rule: Rule): void {
  const input: Loose[] = body.input
  input.forEach((item, place) => {
    if (item.type !== 'reasoning') return
    const at = `input.${place}`
    rule(Array.isArray(item.summary), `${at}: a summary, empty or not, is required`)
    // Servers that show reasoning take it back in the open.
    const proof = !!item.encrypted_content || !!item.content?.some(({ text }: Loose) => text)
    if (!body.store) rule(proof, `${at}: items are not persisted when store is false`)
    const next = input.slice(place + 1).find(({ type }) => type !== 'reasoning')
    const produced = next && next.role !== 'user' && !/_output$|_response$/.test(next.type ?? 'message')
    rule(!!produced, `${at}: reasoning was provided without its required following item`)
  })
}

/** Every call is followed by one answer of its own kind, and every answer follows its call. */
function checkCalls(input: Loose[], kept: Kept, rule: Rule): void {
  const open = new Map<string, string>((kept.calls ?? []).map((id) => [id, 'any']))
  const known = new Set(open.keys())
  const questions = new Set<string>()
  input.forEach((item, place) => {
    const at = `input.${place}`
    if (outputs[item.type]) {
      rule(!known.has(item.call_id), `${at}: call_id ${item.call_id} is unique`)
      known.add(item.call_id)
      open.set(item.call_id, outputs[item.type]!)
    }
    if (item.type === 'mcp_approval_request') questions.add(item.id)
    if (item.type === 'mcp_approval_response') {
      rule(
        questions.has(item.approval_request_id) || open.delete(item.approval_request_id),
        `${at}: no such request`,
      )
      rule(typeof item.approve === 'boolean', `${at}: approve`)
    }
    if (!Object.values(outputs).includes(item.type)) return
    const kind = open.get(item.call_id)
    rule(kind !== undefined, `${at}: no tool call found for function call output`)
    rule(kind === undefined || kind === 'any' || kind === item.type, `${at}: output of the call's kind`)
    open.delete(item.call_id)
  })
  for (const id of open.keys()) rule(false, `no tool output found for function call ${id}`)
}

const prefixes: { readonly [type: string]: string } = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  custom_tool_call: 'ctc_',
}

function checkIds(input: Loose[], rule: Rule): void {
  const ids = input.map(({ id }) => id).filter((id) => id !== undefined)
  rule(new Set(ids).size === ids.length, 'duplicate item found')
  input.forEach(({ id, type }, place) => {
    const prefix = prefixes[type ?? 'message']
    if (id === undefined || prefix === undefined) return
    rule(
      id.startsWith(prefix) && /^[A-Za-z0-9_-]{1,64}$/.test(id),
      `input.${place}: expected an id that begins with ${prefix}`,
    )
  })
}

function checkTools(body: Loose, rule: Rule): void {
  const tools: Loose[] = body.tools ?? []
  const names = tools.map((tool) => tool.name).filter(Boolean)
  rule(new Set(names).size === names.length, 'tools: names are unique')
  for (const tool of tools) {
    if (tool.type !== 'function') continue
    rule(name.test(tool.name), `tools: the name ${tool.name}`)
    rule(typeof tool.strict === 'boolean', `tools: ${tool.name} says whether it is strict`)
    rule(tool.parameters?.type === 'object', `tools: ${tool.name} takes an object`)
    if (tool.strict) brokenSchema(tool.parameters).forEach((why) => rule(false, `tools: ${tool.name} ${why}`))
  }
  const { tool_choice: choice, parallel_tool_calls: parallel } = body
  if (choice !== undefined || parallel !== undefined) rule(tools.length > 0, 'tool_choice needs tools')
  if (choice?.name) rule(names.includes(choice.name), 'tool_choice names a tool')
}

function checkFormat(body: Loose, rule: Rule): void {
  const format = body.text?.format
  if (format?.type !== 'json_schema') return
  rule(name.test(format.name), 'text.format.name')
  if (format.strict) brokenSchema(format.schema).forEach((why) => rule(false, `text.format ${why}`))
}

export function halfCharacters(body: Loose): boolean {
  const lone = /\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}/i
  return lone.test(JSON.stringify(body))
}
