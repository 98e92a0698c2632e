import { startBackOffice } from './back-office.ts'

const token = process.env['BACK_OFFICE_TOKEN']
if (token === undefined || token === '')
  throw new Error('Set BACK_OFFICE_TOKEN to a secret that clients send.')
const { url } = await startBackOffice({ ledger: 'back-office.db', token, port: 4870 })
console.log(`Serving at ${url}`)
