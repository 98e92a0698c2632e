import { ToolError } from '../../execution/tool-error.ts'

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the server refused the connection',
  ECONNRESET: 'the server closed the connection',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the host',
  ENOTFOUND: 'there is no host of that name',
  ETIMEDOUT: 'the server did not answer the connection',
  UND_ERR_CONNECT_TIMEOUT: 'the server did not answer the connection',
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the answer are too large',
  UND_ERR_SOCKET: 'the server closed the connection',
}

const maxDepth = 8

/**
 * A failed exchange as an error for the model: our own words where a rule refused it, else the reason by its code.
 * Messages of the network's libraries are not passed on, since they may name addresses and hold what was sent.
 */
export function failureOf(thrown: unknown, show: (text: string) => string): ToolError {
  const chain = causesOf(thrown)
  const refused = chain.find((error) => error instanceof ToolError)
  if (refused) return new ToolError(show(refused.message), { outcome: refused.outcome })
  if (chain.some(({ message }) => message === 'bad port')) {
    return new ToolError('The port of that URL belongs to another protocol, and is never connected to.')
  }
  const code = chain.map(codeOf).find((found) => found !== undefined)
  const certificate = code !== undefined && /CERT|SIGNATURE|ERR_TLS|ERR_SSL/.test(code)
  const reason = certificate
    ? 'the connection cannot be trusted'
    : (reasons[code ?? ''] ?? 'the request failed')
  return new ToolError(`There is no answer: ${reason}${code === undefined ? '' : ` (${code})`}.`)
}

function causesOf(thrown: unknown): readonly Error[] {
  const chain: Error[] = []
  let error = thrown
  while (error instanceof Error && chain.length < maxDepth) {
    chain.push(error)
    error = error instanceof AggregateError ? (error.errors[0] ?? error.cause) : error.cause
  }
  return chain
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' && /^[A-Z0-9_]+$/.test(error.code)
    ? error.code
    : undefined
}
