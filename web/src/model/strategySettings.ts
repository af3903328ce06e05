// Kinds, securities and parameters of strategies, as the settings of the service have them:
// `strategy.0.name`, `strategy.0.kind`, `strategy.0.parameters.fast` and so on.

export interface StrategySettings {
  kind: string;
  securities: string;
  /** As `fast 20, slow 100`, by name. */
  parameters: string;
}

const KEY = /^strategy\.(\d+)\.(?:(name|kind|securities)|parameters\.(.+))$/;

/** Returns the settings of the strategies by their names. */
export function strategySettings(params: Readonly<Record<string, string>>): Map<string, StrategySettings> {
  const found = new Map<string, { members: Map<string, string>; parameters: string[] }>();
  for (const [key, value] of Object.entries(params)) {
    const [, index, member, parameter] = KEY.exec(key) ?? [];
    if (index === undefined) continue;
    const entry = found.get(index) ?? { members: new Map<string, string>(), parameters: [] };
    if (member !== undefined) entry.members.set(member, value);
    else entry.parameters.push(`${parameter} ${value}`);
    found.set(index, entry);
  }
  const text = (list: string): string => list.split(',').join(', ');
  return new Map(
    [...found.values()].map(({ members, parameters }) => [
      members.get('name') ?? '',
      {
        kind: members.get('kind') ?? '',
        securities: text(members.get('securities') ?? ''),
        parameters: parameters.sort().join(', '),
      },
    ]),
  );
}
