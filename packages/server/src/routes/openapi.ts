import type { Hono } from 'hono'
import { openApiDocument } from '../openapi/document.ts'
import { json, type RequestScope, type Served } from './served.ts'

/** Adds the description of all routes, as OpenAPI 3.1. It is the same for every caller. */
export function addOpenApi(app: Hono<RequestScope>, { basePath }: Served): void {
  app.get('/openapi.json', () => {
    const routes = app.routes.flatMap(({ method, path }) =>
      method === 'ALL' ? [] : [{ method, path: path.slice(basePath.length) }],
    )
    return json(openApiDocument(routes, basePath))
  })
}
