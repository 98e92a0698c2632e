// A server of runs on Node's own HTTP server.
export { type Listening, type ServeOptions, serve } from './node/serve.ts'
