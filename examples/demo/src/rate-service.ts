import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LoopbackServer } from './listen.ts'
import { listen } from './listen.ts'

/** The value of one euro on the last working day of October 2026, according to this service. */
const perEuro: Readonly<Record<string, number>> = {
  EUR: 1,
  USD: 1.0864,
  GBP: 0.8421,
  JPY: 164.37,
  CHF: 0.9388,
}
const fixedOn = '2026-10-30'

/**
 * An exchange-rate service over HTTP: `GET /v1/latest?base=EUR&symbols=USD,GBP` answers
 * `{ base, date, rates: { USD: 1.0864, … } }`; an unknown currency is a 422 and another path a 404, both with
 * `{ message }`.
 */
export function startRateService(): Promise<LoopbackServer> {
  return listen(answer)
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = URL.parse(`http://rates${request.url}`)
  if (url?.pathname !== '/v1/latest') return send(response, 404, { message: 'not found, try /v1/latest' })
  if (request.method !== 'GET') return send(response, 405, { message: 'only GET is answered here' })
  const base = url.searchParams.get('base') ?? 'EUR'
  const asked =
    url.searchParams.get('symbols')?.split(',') ?? Object.keys(perEuro).filter((code) => code !== base)
  const unknown = [base, ...asked].find((code) => perEuro[code] === undefined)
  if (unknown !== undefined) return send(response, 422, { message: `no rate for the currency ${unknown}` })
  const rates = Object.fromEntries(asked.map((code) => [code, rate(base, code)]))
  send(response, 200, { base, date: fixedOn, rates })
}

/** To six significant digits, as rates are quoted. */
function rate(base: string, code: string): number {
  return Number(((perEuro[code] ?? Number.NaN) / (perEuro[base] ?? Number.NaN)).toPrecision(6))
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
