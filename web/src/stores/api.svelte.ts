// The REST calls of the service, from its OpenAPI description. A panel fetches them when it needs
// them.

import type { Rest } from '../link/rest';

export interface Call {
  method: string;
  path: string;
  summary: string;
  tag: string;
}

interface Operation {
  summary?: string;
  description?: string;
  tags?: string[];
}
interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
}

const METHODS = ['get', 'post', 'put', 'delete'];

export class ApiStore {
  calls: Call[] = $state.raw([]);
  error = $state('');
  private loading: Promise<void> | null = null;

  constructor(private readonly rest: Rest) {}

  /** Fetches the description once, and again after a failure. */
  load(): Promise<void> {
    return (this.loading ??= this.fetchCalls());
  }

  /** Returns whether the service has a call. The path has `{}` for each parameter. */
  has(method: string, path: string): boolean {
    return this.calls.some((call) => call.method === method && call.path.replace(/\{[^}]*\}/g, '{}') === path);
  }

  private async fetchCalls(): Promise<void> {
    try {
      const { paths } = await this.rest.get<OpenApi>('/openapi.json');
      this.error = '';
      this.calls = Object.entries(paths).flatMap(([path, operations]) =>
        Object.entries(operations)
          .filter(([method]) => METHODS.includes(method))
          .map(([method, { summary, description, tags }]) => ({
            method: method.toUpperCase(),
            path,
            summary: summary ?? description ?? '',
            tag: tags?.[0] ?? '',
          })),
      );
    } catch (problem) {
      this.error = problem instanceof Error ? problem.message : String(problem);
      this.loading = null;
    }
  }
}
