// The hub's tables, step by step. A released step is never changed: add another one. Hubs of the previous version keep
// working while a step runs and after it: docs/hub-design.md has the rules ("Changing the tables").

/**
 * A string only adds to the tables, in one transaction. `batches` changes a few rows in each transaction, and is repeated until
 * it changes none. `alone` is a statement that PostgreSQL cannot run in a transaction; it must be safe to run twice. `drops`
 * removes things that hubs no longer use if they know at least `leastHub` steps.
 */
export type MigrationStep = string | { batches: string } | { alone: string } | { drops: string; leastHub: number }

/** The viewer of the transaction. Each value is a subquery, so that PostgreSQL evaluates it once instead of for every row. */
const TENANT = "(select nullif(current_setting('hub.tenant', true), '')::int)"
const MEMBER = "(select nullif(current_setting('hub.member', true), '')::int)"
const ROLE = "(select current_setting('hub.role', true))"
const OPERATOR = "(select nullif(current_setting('hub.operator', true), '')::int)"

/**
 * The condition for a conversation that a member may read: it is their own, or shared with everybody or with a project that they
 * were granted. A service may read only the projects that it was granted, and an auditor nothing. An admin may also read the
 * conversations for which they broke the glass.
 */
const IS_READABLE = `tenant = ${TENANT} and rev > 0 and ${ROLE} <> 'auditor' and (
  author = ${MEMBER}
  or (visibility <> 'private' and quarantined_at is null and (
    project in (select project from hub.project_grant where member = ${MEMBER})
    or (${ROLE} <> 'service' and (visibility = 'org' or project in (select id from hub.project where visibility = 'org')))))
  or (${ROLE} = 'admin' and quarantined_at is null and id in (select conversation from hub.break_glass where member = ${MEMBER} and until > now())))`

const IS_OWN = `tenant = ${TENANT} and author = ${MEMBER} and ${ROLE} in ('member', 'admin')`
/** The condition for a row that belongs to a conversation: everybody who may read the conversation may read the row. */
const IS_OF_READABLE = `tenant = ${TENANT} and exists (select from hub.conversation c where c.tenant = of.tenant and c.id = of.conversation)`

const IS_ADMIN = `tenant = ${TENANT} and ${ROLE} = 'admin'`
const MAY_GRANT = `(${ROLE} = 'admin' or hub.level_in(GRANTED) = 'own')`

const IS_EXPIRED = `c.rev > 0 and p.retention_days is not null and
  coalesce(c.ended_at, (extract(epoch from c.received_at) * 1000)::bigint) < (extract(epoch from now()) * 1000)::bigint - p.retention_days * 86400000::bigint`

export const MIGRATIONS: MigrationStep[] = [
  `
create table hub.tenant (
  id int primary key generated always as identity,
  slug text not null unique check (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  /** Identifies the tenant's history. A shard that was built from another history is useless. */
  history uuid not null default gen_random_uuid(),
  wrapped_key bytea not null,
  settings jsonb not null default '{}',
  created_at timestamptz not null default now()
);
create table hub.member (
  tenant int not null references hub.tenant on delete cascade,
  id int not null generated always as identity,
  /** The identity provider's name for them. */
  subject text,
  email text,
  /** The name in refs: alice/claude_code:1f3c. */
  name text not null check (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
  display text,
  role text not null check (role in ('member', 'auditor', 'admin', 'service')),
  created_at timestamptz not null default now(),
  disabled_at timestamptz,
  primary key (tenant, id),
  unique (tenant, name),
  unique (tenant, subject)
);
create table hub.token (
  hash bytea primary key,
  /** Identifies the token without revealing its secret. */
  id bigint not null unique generated always as identity,
  tenant int not null,
  member int not null,
  kind text not null check (kind in ('personal', 'device', 'service')),
  scopes text[] not null,
  name text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  foreign key (tenant, member) references hub.member on delete cascade
);
/** An invitation can be exchanged once, for one token of its member. */
create table hub.invitation (
  hash bytea primary key,
  tenant int not null,
  member int not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  foreign key (tenant, member) references hub.member on delete cascade
);
create table hub.project (
  tenant int not null references hub.tenant on delete cascade,
  id int not null generated always as identity,
  key text not null,
  title text,
  visibility text not null default 'project' check (visibility in ('project', 'org')),
  retention_days int,
  primary key (tenant, id),
  unique (tenant, key)
);
create table hub.project_grant (
  tenant int not null,
  project int not null,
  member int not null,
  level text not null check (level in ('read', 'write', 'own')),
  primary key (tenant, project, member),
  foreign key (tenant, project) references hub.project on delete cascade,
  foreign key (tenant, member) references hub.member on delete cascade
);
create table hub.consent (
  tenant int not null,
  member int not null,
  project int not null,
  since timestamptz not null default now(),
  until timestamptz,
  what text[] not null,
  primary key (tenant, member, project, since),
  foreign key (tenant, project) references hub.project on delete cascade,
  foreign key (tenant, member) references hub.member on delete cascade
);
create table hub.conversation (
  tenant int not null references hub.tenant,
  id bigint not null generated always as identity,
  author int not null,
  source text not null,
  native_id text not null,
  project int not null,
  visibility text not null check (visibility in ('private', 'project', 'org')),
  /** 0 until the first commit. Until then, nobody can read the conversation. */
  rev bigint not null default 0,
  digest bytea,
  seq bigint,
  kind text not null,
  parent_id text,
  models text[] not null default '{}',
  message_count int not null default 0,
  copied_count int not null default 0,
  commit_count int not null default 0,
  superseded bool not null default false,
  estimated_tokens bigint not null default 0,
  text_bytes bigint not null default 0,
  /** In milliseconds: the start and end that the agent recorded, then the times of the first and last message. */
  started_at bigint,
  ended_at bigint,
  first_at bigint,
  last_at bigint,
  redaction_version int not null,
  /** If newer rules found what looks like a secret: since when only the author can read it, and the names of these rules. */
  quarantined_at timestamptz,
  quarantined_by text[],
  /** The version of the redaction rules with which the complete conversation was scanned. */
  scanned int not null default 0,
  received_at timestamptz not null default now(),
  /** Everything that is not needed to find the conversation, sealed with the conversation's key. */
  head bytea,
  primary key (tenant, id),
  unique (tenant, author, source, native_id)
);
create index on hub.conversation (tenant, project, ended_at);
create index on hub.conversation (tenant, source, native_id text_pattern_ops);
create index on hub.conversation (tenant, source, parent_id) where parent_id is not null;
create table hub.chunk (
  tenant int not null,
  conversation bigint not null,
  /** A hash of the plain bytes, keyed with the conversation's key. Without that key, it reveals nothing. */
  hash bytea not null,
  bytes int not null,
  data bytea not null,
  facts bytea not null,
  stored_at timestamptz not null default now(),
  /** The version of the redaction rules with which the chunk was scanned, and the rules that found something. */
  scanned int not null default 0,
  found text[],
  primary key (tenant, conversation, hash)
);
alter table hub.chunk alter column data set storage external, alter column facts set storage external;
alter table hub.conversation alter column head set storage external;
create table hub_key.conversation_key (
  tenant int not null,
  conversation bigint not null,
  wrapped bytea not null,
  primary key (tenant, conversation)
);
/** A counter for each tenant. A transaction increases it last, so that a follower of the feed misses nothing. */
create table hub.feed (
  tenant int primary key references hub.tenant on delete cascade,
  seq bigint not null default 0
);
create table hub.change (
  tenant int not null,
  seq bigint not null,
  conversation bigint not null,
  deleted bool not null,
  primary key (tenant, seq)
);
create index on hub.change (tenant, conversation, seq);
create index on hub.change (tenant) where deleted;
create table hub.tombstone (
  tenant int not null references hub.tenant on delete cascade,
  hash bytea not null,
  at timestamptz not null default now(),
  member int not null,
  primary key (tenant, hash)
);
create table hub.audit (
  tenant int not null references hub.tenant on delete cascade,
  id bigint not null generated always as identity,
  at timestamptz not null default now(),
  /** Null if the operator or the hub itself did it. */
  member int,
  action text not null,
  target text,
  detail jsonb,
  primary key (tenant, at, id)
);
/** The record of a deletion. It contains nothing of the deleted content. */
create table hub.receipt (
  tenant int not null references hub.tenant on delete cascade,
  id bigint not null generated always as identity,
  at timestamptz not null default now(),
  /** The author of the conversations, and the member who deleted them: null if the hub did. */
  member int not null,
  by_member int,
  conversations int not null,
  why text not null check (why in ('person', 'retention', 'admin', 'quarantine')),
  /** When the keys were removed from the files of PostgreSQL's tables. */
  key_gone_at timestamptz,
  primary key (tenant, id)
);
create index on hub.receipt (tenant, member, id);
create index on hub.receipt (id) where key_gone_at is null;
create table hub.break_glass (
  tenant int not null,
  conversation bigint not null,
  member int not null,
  /** The author, who is notified, and the ref for that notice, because the conversation may be deleted by then. */
  author int not null,
  ref text not null,
  reason text not null,
  at timestamptz not null default now(),
  until timestamptz not null check (until <= at + interval '24 hours'),
  primary key (tenant, conversation, member, at)
);

do $$ declare name text; begin
  for name in select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('hub', 'hub_key') and c.relkind = 'r' and c.relname <> 'migration'
  loop
    execute format('alter table %s enable row level security', name);
    execute format('alter table %s force row level security', name);
    execute format('create policy owner on %s to current_user using (true) with check (true)', name);
  end loop;
end $$;

/** Used in the policies on project_grant, which cannot query the table, because that would evaluate the policies again. */
create function hub.level_in(of_project int) returns text language sql stable security definer set search_path = '' as
  $$ select level from hub.project_grant where tenant = ${TENANT} and project = of_project and member = ${MEMBER} $$;
create function hub.is_granted(of_project int) returns bool language sql stable security definer set search_path = '' as
  $$ select exists (select from hub.project_grant where tenant = ${TENANT} and project = of_project) $$;

/** Begins a transaction on behalf of a member. Returns false if they have left, or if their role has changed. */
create function hub.begin_as(of_tenant int, of_member int, as_role text) returns bool language plpgsql security definer set search_path = '' as $$
begin
  perform pg_catalog.set_config('hub.tenant', of_tenant::text, true), pg_catalog.set_config('hub.member', of_member::text, true),
    pg_catalog.set_config('hub.role', as_role, true);
  return exists (select from hub.member where tenant = of_tenant and id = of_member and role = as_role and disabled_at is null);
end $$;
/** Makes the only changes that a scan by newer rules may make. Returns false if the conversation has changed meanwhile. */
create function hub.mark_scanned(of_conversation bigint, of_rev bigint, version int, hashes bytea[], secret bytea[], rules text[])
returns bool language plpgsql security definer set search_path = '' as $$
declare next_seq bigint; begin
  perform from hub.conversation where tenant = ${TENANT} and id = of_conversation and rev = of_rev for update;
  if not found then return false; end if;
  update hub.chunk set scanned = version, found = case when hash = any (secret) then rules end
    where tenant = ${TENANT} and conversation = of_conversation and hash = any (hashes);
  update hub.conversation set scanned = version where tenant = ${TENANT} and id = of_conversation;
  if cardinality(rules) > 0 then
    update hub.conversation set quarantined_at = now(), quarantined_by = rules where tenant = ${TENANT} and id = of_conversation;
    update hub.feed set seq = seq + 1 where tenant = ${TENANT} returning seq into next_seq;
    insert into hub.change (tenant, seq, conversation, deleted) values (${TENANT}, next_seq, of_conversation, true);
  end if;
  return true;
end $$;
revoke execute on function hub.mark_scanned from public;
grant execute on function hub.mark_scanned to dex_hub_index;

grant usage on schema hub, hub_key to dex_hub_app, dex_hub_index;
grant select on hub.migration to dex_hub_app;

grant select on hub.tenant, hub.member, hub.project, hub.conversation, hub.chunk, hub_key.conversation_key, hub.feed, hub.change, hub.tombstone to dex_hub_index;
create policy index on hub.tenant for select to dex_hub_index using (id = ${TENANT});
create policy index on hub.member for select to dex_hub_index using (tenant = ${TENANT});
create policy index on hub.project for select to dex_hub_index using (tenant = ${TENANT});
create policy index on hub.conversation for select to dex_hub_index using (tenant = ${TENANT} and rev > 0 and quarantined_at is null);
create policy index on hub.chunk for select to dex_hub_index using (tenant = ${TENANT});
create policy index on hub_key.conversation_key for select to dex_hub_index using (tenant = ${TENANT});
create policy index on hub.feed for select to dex_hub_index using (true);
create policy index on hub.change for select to dex_hub_index using (tenant = ${TENANT});
create policy index on hub.tombstone for select to dex_hub_index using (tenant = ${TENANT});

grant select, insert, update (last_used_at, revoked_at) on hub.token to dex_hub_app;
create policy holder on hub.token for select to dex_hub_app
  using (hash = (select decode(nullif(current_setting('hub.token', true), ''), 'hex')));
create policy used on hub.token for update to dex_hub_app
  using (hash = (select decode(nullif(current_setting('hub.token', true), ''), 'hex')));
create policy own on hub.token for select to dex_hub_app using (tenant = ${TENANT} and member = ${MEMBER});
create policy revoked on hub.token for update to dex_hub_app using (tenant = ${TENANT} and member = ${MEMBER});
/** A token may be added for the member whose invitation was redeemed in this transaction. */
create policy invited on hub.token for insert to dex_hub_app with check (tenant = ${TENANT} and member = ${MEMBER}
  and exists (select from hub.invitation i where i.tenant = token.tenant and i.member = token.member and i.used_at = now()));
grant select, update (used_at) on hub.invitation to dex_hub_app;
create policy bearer on hub.invitation for select to dex_hub_app
  using (hash = (select decode(nullif(current_setting('hub.invitation', true), ''), 'hex')));
create policy used on hub.invitation for update to dex_hub_app
  using (hash = (select decode(nullif(current_setting('hub.invitation', true), ''), 'hex')));
grant select on hub.tenant, hub.member to dex_hub_app;
grant select, insert, update on hub.project, hub.project_grant to dex_hub_app;
grant delete on hub.project_grant to dex_hub_app;
create policy member on hub.tenant for select to dex_hub_app
  using (id = ${TENANT} or id in (select tenant from hub.token));
create policy member on hub.member for select to dex_hub_app
  using (tenant = ${TENANT} or (tenant, id) in (select tenant, member from hub.token)
    or (tenant, id) in (select tenant, member from hub.invitation));
create policy member on hub.project for select to dex_hub_app using (tenant = ${TENANT});
create policy new on hub.project for insert to dex_hub_app with check (tenant = ${TENANT} and ${ROLE} in ('member', 'admin'));
create policy own on hub.project for update to dex_hub_app using (tenant = ${TENANT} and ${MAY_GRANT.replace("GRANTED", "project.id")});
create policy member on hub.project_grant for select to dex_hub_app using (tenant = ${TENANT});
create policy new on hub.project_grant for insert to dex_hub_app with check (tenant = ${TENANT} and (
  ${MAY_GRANT.replace("GRANTED", "project_grant.project")}
  or (member = ${MEMBER} and not hub.is_granted(project))));
create policy own on hub.project_grant for update to dex_hub_app
  using (tenant = ${TENANT} and ${MAY_GRANT.replace("GRANTED", "project_grant.project")});
create policy gone on hub.project_grant for delete to dex_hub_app
  using (tenant = ${TENANT} and ${MAY_GRANT.replace("GRANTED", "project_grant.project")});

grant select, insert, update, delete on hub.consent to dex_hub_app;
create policy own on hub.consent to dex_hub_app
  using (tenant = ${TENANT} and member = ${MEMBER}) with check (tenant = ${TENANT} and member = ${MEMBER});

grant select, insert, update, delete on hub.conversation to dex_hub_app;
create policy readable on hub.conversation for select to dex_hub_app using (${IS_READABLE});
create policy own on hub.conversation to dex_hub_app using (${IS_OWN}) with check (${IS_OWN}
  and project in (select project from hub.project_grant where member = ${MEMBER} and level in ('write', 'own')));
grant select, insert, delete on hub.chunk to dex_hub_app;
create policy of_readable on hub.chunk as permissive for select to dex_hub_app using (${IS_OF_READABLE.replaceAll("of.", "chunk.")});
create policy of_own on hub.chunk to dex_hub_app
  using (tenant = ${TENANT} and exists (select from hub.conversation c where c.tenant = chunk.tenant and c.id = chunk.conversation and c.author = ${MEMBER}))
  with check (tenant = ${TENANT} and exists (select from hub.conversation c where c.tenant = chunk.tenant and c.id = chunk.conversation and c.author = ${MEMBER}));
grant select, insert, delete on hub_key.conversation_key to dex_hub_app;
create policy of_readable on hub_key.conversation_key for select to dex_hub_app using (${IS_OF_READABLE.replaceAll("of.", "conversation_key.")});
create policy of_own on hub_key.conversation_key to dex_hub_app
  using (tenant = ${TENANT} and exists (select from hub.conversation c where c.tenant = conversation_key.tenant and c.id = conversation_key.conversation and c.author = ${MEMBER}))
  with check (tenant = ${TENANT} and exists (select from hub.conversation c where c.tenant = conversation_key.tenant and c.id = conversation_key.conversation and c.author = ${MEMBER}));

grant select, insert, update on hub.feed to dex_hub_app;
create policy member on hub.feed to dex_hub_app using (tenant = ${TENANT}) with check (tenant = ${TENANT});
grant select, insert on hub.change to dex_hub_app;
create policy member on hub.change for insert to dex_hub_app with check (tenant = ${TENANT});
create policy of_readable on hub.change for select to dex_hub_app
  using (tenant = ${TENANT} and (deleted or exists (select from hub.conversation c where c.tenant = change.tenant and c.id = change.conversation)));
grant select, insert on hub.tombstone to dex_hub_app;
create policy member on hub.tombstone to dex_hub_app
  using (tenant = ${TENANT}) with check (tenant = ${TENANT} and member = ${MEMBER});
grant select, insert on hub.receipt to dex_hub_app;
create policy own on hub.receipt for select to dex_hub_app using (tenant = ${TENANT} and member = ${MEMBER});
create policy new on hub.receipt for insert to dex_hub_app with check (tenant = ${TENANT} and member = ${MEMBER} and key_gone_at is null);

/** dex_hub_keys owns the table of keys, because only its owner may rewrite it. No policy lets it read a key. */
grant usage on schema hub, hub_key to dex_hub_keys;
grant create on schema hub_key to dex_hub_keys;
alter table hub_key.conversation_key owner to dex_hub_keys;
revoke create on schema hub_key from dex_hub_keys;
revoke all on hub_key.conversation_key from dex_hub_keys;
grant select (id, key_gone_at), update (key_gone_at) on hub.receipt to dex_hub_keys;
create policy keys on hub.receipt to dex_hub_keys using (true) with check (true);

grant insert, select on hub.audit to dex_hub_app;
create policy own on hub.audit for insert to dex_hub_app with check (tenant = ${TENANT} and member = ${MEMBER});
create policy read on hub.audit for select to dex_hub_app using (tenant = ${TENANT} and ${ROLE} in ('auditor', 'admin'));
grant select, insert on hub.break_glass to dex_hub_app;
create policy own on hub.break_glass for select to dex_hub_app using (tenant = ${TENANT} and (member = ${MEMBER} or author = ${MEMBER}));
create policy admin on hub.break_glass for insert to dex_hub_app
  with check (tenant = ${TENANT} and member = ${MEMBER} and ${ROLE} = 'admin');
`,
  /** Hubs that know fewer steps than this can no longer work with the tables. */
  "alter table hub.migration add column least_hub int not null default 1",
  `
/** The size of the conversation's chunks. Null if the row was written by a hub that did not count it. */
alter table hub.conversation add column stored_bytes bigint;
alter table hub.member add column quota_bytes bigint;
`,
  {
    batches: `update hub.conversation c set stored_bytes =
      (select coalesce(sum(k.bytes), 0) from hub.chunk k where k.tenant = c.tenant and k.conversation = c.id)
      where (c.tenant, c.id) in (select tenant, id from hub.conversation where stored_bytes is null and rev > 0 limit 500)`,
  },
  /** When a client last planned a push of the conversation. Its unfinished data is kept for a week after that. */
  "alter table hub.conversation add column planned_at timestamptz",
  `
/** True if somebody owns, shares or has shared the project. Otherwise, the next member who shares it becomes its owner. */
create function hub.is_taken(of_project int) returns bool language sql stable security definer set search_path = '' as $$
  select exists (select from hub.project_grant where tenant = ${TENANT} and project = of_project and level = 'own')
    or exists (select from hub.consent where tenant = ${TENANT} and project = of_project) $$;
create policy first on hub.project_grant for insert to dex_hub_app
  with check (tenant = ${TENANT} and member = ${MEMBER} and ${ROLE} in ('member', 'admin') and not hub.is_taken(project));
create policy first_of_granted on hub.project_grant for update to dex_hub_app
  using (tenant = ${TENANT} and member = ${MEMBER} and ${ROLE} in ('member', 'admin') and not hub.is_taken(project));
`,
  `
/** A process of the hub that stores search shards. */
create table hub.node (
  name text primary key check (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
  /** The address at which other nodes reach it; null if they cannot. */
  url text,
  seen_at timestamptz not null default now()
);
/** A group of a tenant's projects that share one search index. */
create table hub.shard (
  tenant int not null references hub.tenant on delete cascade,
  id int not null,
  /** The node that answers from it; null until one takes it. */
  node text,
  /** The node that is building the shard and will then take it over. */
  moving_to text,
  moving_since timestamptz,
  made_at timestamptz not null default now(),
  primary key (tenant, id)
);
insert into hub.shard (tenant, id) select id, 0 from hub.tenant;
alter table hub.project add column shard int not null default 0;

do $$ declare name text; begin
  foreach name in array array['hub.node', 'hub.shard'] loop
    execute format('alter table %s enable row level security', name);
    execute format('alter table %s force row level security', name);
    execute format('create policy owner on %s to current_user using (true) with check (true)', name);
  end loop;
end $$;
grant select on hub.node, hub.shard to dex_hub_index;
create policy index on hub.node for select to dex_hub_index using (true);
create policy index on hub.shard for select to dex_hub_index using (true);

/** The running node with the fewest shards; null if no node is running. */
create function hub.node_with_room() returns text language sql stable security definer set search_path = '' as
  $$ select n.name from hub.node n left join hub.shard s on s.node = n.name where n.seen_at > now() - interval '1 minute'
     group by n.name order by count(s.id), n.name limit 1 $$;
revoke execute on function hub.node_with_room from public;
/** Records that a node is running. It takes the shards without a node, also those of tenants that an older hub added. */
create function hub.node_seen(of_name text, at_url text) returns void language sql security definer set search_path = '' as $$
  insert into hub.node (name, url) values (of_name, at_url) on conflict (name) do update set url = excluded.url, seen_at = now();
  insert into hub.shard (tenant, id) select id, 0 from hub.tenant on conflict do nothing;
  update hub.shard set node = of_name where node is null $$;
revoke execute on function hub.node_seen from public;
grant execute on function hub.node_seen to dex_hub_index;
/** Places a new project in the tenant's newest shard if that has room, otherwise in a new shard. */
create function hub.place_project_of(of_tenant int, of_project int, most bigint) returns void language plpgsql security definer set search_path = '' as $$
declare newest int; held bigint; begin
  -- Projects that are created at the same time are placed one after the other.
  perform from hub.tenant where id = of_tenant for no key update;
  select max(id) into newest from hub.shard where tenant = of_tenant;
  select coalesce(sum(c.message_count), 0) into held from hub.conversation c
    join hub.project p on p.tenant = c.tenant and p.id = c.project where c.tenant = of_tenant and p.shard = newest;
  if newest is null or held >= most then
    newest := coalesce(newest + 1, 0);
    insert into hub.shard (tenant, id, node) values (of_tenant, newest, hub.node_with_room());
  end if;
  update hub.project set shard = newest where tenant = of_tenant and id = of_project
    and not exists (select from hub.conversation c where c.tenant = of_tenant and c.project = of_project);
end $$;
revoke execute on function hub.place_project_of from public;
/** Places a new project of the transaction's tenant. */
create function hub.place_project(of_project int, most bigint) returns void language sql security definer set search_path = '' as
  $$ select hub.place_project_of(${TENANT}, of_project, most) $$;
revoke execute on function hub.place_project from public;
grant execute on function hub.place_project to dex_hub_app;
`,
  `
/** Determines who may log in to a tenant. An issuer serves one tenant, so its people are members of no other. */
create table hub.identity_provider (
  tenant int primary key references hub.tenant on delete cascade,
  issuer text not null unique,
  /** If set, only people with an address in this domain, or in this group, may log in. */
  email_domain text,
  required_group text
);
/** The operator's grants to everybody in a group. */
create table hub.group_grant (
  tenant int not null,
  group_name text not null,
  project int not null,
  level text not null check (level in ('read', 'write', 'own')),
  primary key (tenant, group_name, project),
  foreign key (tenant, project) references hub.project on delete cascade
);
create table hub.group_role (
  tenant int not null references hub.tenant on delete cascade,
  group_name text not null,
  role text not null check (role in ('auditor', 'admin')),
  primary key (tenant, group_name)
);
do $$ declare name text; begin
  foreach name in array array['hub.identity_provider', 'hub.group_grant', 'hub.group_role'] loop
    execute format('alter table %s enable row level security', name);
    execute format('alter table %s force row level security', name);
    execute format('create policy owner on %s to current_user using (true) with check (true)', name);
  end loop;
end $$;

alter table hub.member
  /** The member's groups at their last login, as the identity provider reported them. */
  add column groups text[] not null default '{}',
  add column role_by_group bool not null default false;
/**
 * group_level is the level that groups grant, and person_level the level that a person granted in addition. level is the higher
 * of the two. If no group grants anything, it is the level that a person granted.
 */
alter table hub.project_grant
  add column group_level text check (group_level in ('read', 'write', 'own')),
  add column person_level text check (person_level in ('read', 'write', 'own'));
create function hub.higher_level(one text, other text) returns text language sql immutable set search_path = '' as
  $$ select (array['own', 'write', 'read'])[least(array_position(array['own', 'write', 'read'], one), array_position(array['own', 'write', 'read'], other))] $$;

/** Grants a member what their groups grant, and revokes what was granted by groups that they have left. */
create function hub.apply_groups(of_tenant int, of_member int) returns void language plpgsql security definer set search_path = '' as $$
declare who hub.member; new_role text; begin
  select * into who from hub.member m where m.tenant = of_tenant and m.id = of_member for update;
  with ended as (
    select g.project, g.person_level from hub.project_grant g where g.tenant = of_tenant and g.member = of_member and g.group_level is not null
      and not exists (select from hub.group_grant r where r.tenant = of_tenant and r.project = g.project and r.group_name = any (who.groups))),
  lost as (
    delete from hub.project_grant g using ended e where g.tenant = of_tenant and g.member = of_member and g.project = e.project
      and e.person_level is null returning g.project),
  lowered as (
    update hub.project_grant g set group_level = null, level = e.person_level from ended e where g.tenant = of_tenant and g.member = of_member
      and g.project = e.project and e.person_level is not null returning g.project)
  insert into hub.audit (tenant, action, target, detail)
    select of_tenant, 'grant_end', p.key, jsonb_build_object('about', who.name, 'origin', 'group')
    from ended join hub.project p on p.tenant = of_tenant and p.id = ended.project;
  with given as (
    insert into hub.project_grant as g (tenant, project, member, level, group_level)
      select of_tenant, project, of_member, level, level from (
        select r.project, (array['own', 'write', 'read'])[min(array_position(array['own', 'write', 'read'], r.level))] as level
        from hub.group_grant r where r.tenant = of_tenant and r.group_name = any (who.groups) group by r.project) best
    on conflict (tenant, project, member) do update set group_level = excluded.group_level,
      person_level = case when g.group_level is null then g.level else g.person_level end,
      level = hub.higher_level(excluded.group_level, case when g.group_level is null then g.level else g.person_level end)
      where g.group_level is distinct from excluded.group_level
    returning g.project, g.group_level)
  insert into hub.audit (tenant, action, target, detail)
    select of_tenant, 'grant', p.key, jsonb_build_object('about', who.name, 'origin', 'group', 'level', given.group_level)
    from given join hub.project p on p.tenant = of_tenant and p.id = given.project;
  select min(r.role) into new_role from hub.group_role r where r.tenant = of_tenant and r.group_name = any (who.groups);
  if (who.role = 'member' or who.role_by_group) and coalesce(new_role, 'member') <> who.role then
    update hub.member m set role = coalesce(new_role, 'member'), role_by_group = new_role is not null
      where m.tenant = of_tenant and m.id = of_member;
    insert into hub.audit (tenant, action, target, detail)
      values (of_tenant, 'role', who.name, jsonb_build_object('role', coalesce(new_role, 'member'), 'origin', 'group'));
  end if;
end $$;
revoke execute on function hub.apply_groups from public;

/**
 * Stores a token for a person whom an identity provider authenticated, and adds them as a member at their first login. The hub's
 * role can add members only with this function. The operator has assigned the issuer to a tenant. The e-mail address is verified.
 */
create function hub.log_in(of_issuer text, of_subject text, of_email text, of_display text, wanted_name text, of_groups text[],
  token_hash bytea, token_days int) returns text language plpgsql security definer set search_path = '' as $$
declare provider hub.identity_provider; who hub.member; tries int := 0; token_scopes text[]; begin
  -- Handles one login of a tenant at a time, so that two logins of one new person add only one member.
  select * into provider from hub.identity_provider p where p.issuer = of_issuer for update;
  if not found then return 'no_tenant'; end if;
  if provider.email_domain is not null
    and right(lower(coalesce(of_email, '')), length(provider.email_domain) + 1) <> '@' || provider.email_domain then return 'domain'; end if;
  if provider.required_group is not null and not provider.required_group = any (of_groups) then return 'group'; end if;
  select * into who from hub.member m where m.tenant = provider.tenant and m.subject = of_issuer || ' ' || of_subject;
  if who.disabled_at is not null then return 'left'; end if;
  while who.id is null loop
    tries := tries + 1;
    if tries > 1000 then raise exception 'no name is free'; end if;
    insert into hub.member (tenant, subject, name, role) values (provider.tenant, of_issuer || ' ' || of_subject,
      case tries when 1 then wanted_name else wanted_name || '-' || tries end, 'member') on conflict do nothing returning * into who;
    if who.id is not null then
      insert into hub.audit (tenant, member, action, target, detail)
        values (who.tenant, who.id, 'member_add', who.name, jsonb_build_object('role', 'member'));
    end if;
  end loop;
  update hub.member m set email = of_email, display = of_display, groups = of_groups where m.tenant = who.tenant and m.id = who.id;
  perform hub.apply_groups(who.tenant, who.id);
  select m.role into who.role from hub.member m where m.tenant = who.tenant and m.id = who.id;
  token_scopes := case who.role when 'admin' then '{push,read,admin}' when 'member' then '{push,read}' else '{read}' end;
  insert into hub.token (hash, tenant, member, kind, scopes, name, expires_at)
    values (token_hash, who.tenant, who.id, 'device', token_scopes, 'login', now() + make_interval(days => token_days));
  insert into hub.audit (tenant, member, action, target, detail)
    values (who.tenant, who.id, 'login', 'login', jsonb_build_object('about', who.name, 'kind', 'device', 'scopes', token_scopes));
  return 'in';
end $$;
/** The member whom an identity provider's access token names; none if they never logged in, or have left. */
create function hub.known_as(of_issuer text, of_subject text) returns table (tenant int, member int, role text, name text, slug text)
language sql stable security definer set search_path = '' as $$
  select m.tenant, m.id, m.role, m.name, t.slug from hub.identity_provider p join hub.tenant t on t.id = p.tenant
  join hub.member m on m.tenant = p.tenant and m.subject = of_issuer || ' ' || of_subject and m.disabled_at is null
  where p.issuer = of_issuer $$;
revoke execute on function hub.log_in, hub.known_as from public;
grant execute on function hub.log_in, hub.known_as to dex_hub_app;
`,
  `
/** Records that a node has built a shard that moves to it, and answers from it from now on. */
create function hub.shard_arrived(of_tenant int, of_shard int, at_node text) returns void language sql security definer set search_path = '' as
  $$ update hub.shard set node = at_node, moving_to = null, moving_since = null where tenant = of_tenant and id = of_shard and moving_to = at_node $$;
revoke execute on function hub.shard_arrived from public;
grant execute on function hub.shard_arrived to dex_hub_index;
`,
  `
/** The title, which the head also contains. It is sealed separately, because a search ranks many titles but reads few heads. */
alter table hub.conversation add column title bytea,
  /** The revision to which the title belongs. A hub that does not know these columns leaves an old title in place. */
  add column title_rev bigint;
alter table hub.conversation alter column title set storage external;
`,
  { alone: "create index concurrently if not exists project_grant_of_member on hub.project_grant (tenant, member)" },
  `
/**
 * Like the previous version, but recognises a member whom the operator added with an e-mail address when they first log in with
 * it. This is safe: only an operator writes the address of somebody who never logged in, and the address of a login was verified.
 */
create or replace function hub.log_in(of_issuer text, of_subject text, of_email text, of_display text, wanted_name text, of_groups text[],
  token_hash bytea, token_days int) returns text language plpgsql security definer set search_path = '' as $$
declare provider hub.identity_provider; who hub.member; is_by_email bool := false; tries int := 0; token_scopes text[]; begin
  -- Handles one login of a tenant at a time, so that two logins of one new person add only one member.
  select * into provider from hub.identity_provider p where p.issuer = of_issuer for update;
  if not found then return 'no_tenant'; end if;
  if provider.email_domain is not null
    and right(lower(coalesce(of_email, '')), length(provider.email_domain) + 1) <> '@' || provider.email_domain then return 'domain'; end if;
  if provider.required_group is not null and not provider.required_group = any (of_groups) then return 'group'; end if;
  select * into who from hub.member m where m.tenant = provider.tenant and m.subject = of_issuer || ' ' || of_subject;
  if who.disabled_at is not null then return 'left'; end if;
  if who.id is null then
    -- If two members have the address, neither is chosen, because nobody can say which of them logs in.
    update hub.member m set subject = of_issuer || ' ' || of_subject where m.tenant = provider.tenant and m.subject is null and m.id = (
      select min(o.id) from hub.member o where o.tenant = provider.tenant and o.subject is null and o.disabled_at is null
        and o.role <> 'service' and lower(o.email) = lower(of_email) having count(*) = 1) returning * into who;
    is_by_email := who.id is not null;
  end if;
  while who.id is null loop
    tries := tries + 1;
    if tries > 1000 then raise exception 'no name is free'; end if;
    insert into hub.member (tenant, subject, name, role) values (provider.tenant, of_issuer || ' ' || of_subject,
      case tries when 1 then wanted_name else wanted_name || '-' || tries end, 'member') on conflict do nothing returning * into who;
    if who.id is not null then
      insert into hub.audit (tenant, member, action, target, detail)
        values (who.tenant, who.id, 'member_add', who.name, jsonb_build_object('role', 'member'));
    end if;
  end loop;
  update hub.member m set email = of_email, display = of_display, groups = of_groups where m.tenant = who.tenant and m.id = who.id;
  perform hub.apply_groups(who.tenant, who.id);
  select m.role into who.role from hub.member m where m.tenant = who.tenant and m.id = who.id;
  token_scopes := case who.role when 'admin' then '{push,read,admin}' when 'member' then '{push,read}' else '{read}' end;
  insert into hub.token (hash, tenant, member, kind, scopes, name, expires_at)
    values (token_hash, who.tenant, who.id, 'device', token_scopes, 'login', now() + make_interval(days => token_days));
  insert into hub.audit (tenant, member, action, target, detail)
    values (who.tenant, who.id, 'login', 'login', jsonb_build_object('about', who.name, 'kind', 'device', 'scopes', token_scopes)
      || case when is_by_email then '{"found_by": "email"}'::jsonb else '{}' end);
  return 'in';
end $$;
`,
  `
/**
 * Like the previous version, but refuses a member whom the operator disabled before their first login, instead of adding them
 * again. They are accepted if a member who is not disabled has the same address.
 */
create or replace function hub.log_in(of_issuer text, of_subject text, of_email text, of_display text, wanted_name text, of_groups text[],
  token_hash bytea, token_days int) returns text language plpgsql security definer set search_path = '' as $$
declare provider hub.identity_provider; who hub.member; is_by_email bool := false; tries int := 0; token_scopes text[]; begin
  -- Handles one login of a tenant at a time, so that two logins of one new person add only one member.
  select * into provider from hub.identity_provider p where p.issuer = of_issuer for update;
  if not found then return 'no_tenant'; end if;
  if provider.email_domain is not null
    and right(lower(coalesce(of_email, '')), length(provider.email_domain) + 1) <> '@' || provider.email_domain then return 'domain'; end if;
  if provider.required_group is not null and not provider.required_group = any (of_groups) then return 'group'; end if;
  select * into who from hub.member m where m.tenant = provider.tenant and m.subject = of_issuer || ' ' || of_subject;
  if who.disabled_at is not null then return 'left'; end if;
  if who.id is null then
    -- If two members have the address, neither is chosen, because nobody can say which of them logs in.
    update hub.member m set subject = of_issuer || ' ' || of_subject where m.tenant = provider.tenant and m.subject is null and m.id = (
      select min(o.id) from hub.member o where o.tenant = provider.tenant and o.subject is null and o.disabled_at is null
        and o.role <> 'service' and lower(o.email) = lower(of_email) having count(*) = 1) returning * into who;
    is_by_email := who.id is not null;
    if who.id is null and (select bool_and(o.disabled_at is not null) from hub.member o where o.tenant = provider.tenant and o.subject is null
      and o.role <> 'service' and lower(o.email) = lower(of_email)) then return 'left'; end if;
  end if;
  while who.id is null loop
    tries := tries + 1;
    if tries > 1000 then raise exception 'no name is free'; end if;
    insert into hub.member (tenant, subject, name, role) values (provider.tenant, of_issuer || ' ' || of_subject,
      case tries when 1 then wanted_name else wanted_name || '-' || tries end, 'member') on conflict do nothing returning * into who;
    if who.id is not null then
      insert into hub.audit (tenant, member, action, target, detail)
        values (who.tenant, who.id, 'member_add', who.name, jsonb_build_object('role', 'member'));
    end if;
  end loop;
  update hub.member m set email = of_email, display = of_display, groups = of_groups where m.tenant = who.tenant and m.id = who.id;
  perform hub.apply_groups(who.tenant, who.id);
  select m.role into who.role from hub.member m where m.tenant = who.tenant and m.id = who.id;
  token_scopes := case who.role when 'admin' then '{push,read,admin}' when 'member' then '{push,read}' else '{read}' end;
  insert into hub.token (hash, tenant, member, kind, scopes, name, expires_at)
    values (token_hash, who.tenant, who.id, 'device', token_scopes, 'login', now() + make_interval(days => token_days));
  insert into hub.audit (tenant, member, action, target, detail)
    values (who.tenant, who.id, 'login', 'login', jsonb_build_object('about', who.name, 'kind', 'device', 'scopes', token_scopes)
      || case when is_by_email then '{"found_by": "email"}'::jsonb else '{}' end);
  return 'in';
end $$;
`,
  `
/** A chunk's uncompressed size, which counts for a quota. Null if it was written by a hub that counted compressed bytes. */
alter table hub.chunk add column plain_bytes bigint;
`,
  `
/** A request to share a project, which waits for its owners' decision. Approved requests are deleted. */
create table hub.access_request (
  tenant int not null,
  project int not null,
  member int not null,
  at timestamptz not null default now(),
  /** When the request was denied. For a while after that, the member cannot send the owners another one. */
  denied_at timestamptz,
  primary key (tenant, project, member),
  foreign key (tenant, project) references hub.project on delete cascade,
  foreign key (tenant, member) references hub.member on delete cascade
);
create index on hub.access_request (tenant, member);
/** A member who shares a project whose key matches the pattern gets access to it at once. */
create table hub.project_rule (
  tenant int not null references hub.tenant on delete cascade,
  pattern text not null check (pattern ~ '^[^*]+/[*]$'),
  primary key (tenant, pattern)
);
do $$ declare name text; begin
  foreach name in array array['hub.access_request', 'hub.project_rule'] loop
    execute format('alter table %s enable row level security', name);
    execute format('alter table %s force row level security', name);
    execute format('create policy owner on %s to current_user using (true) with check (true)', name);
  end loop;
end $$;
/** Members add requests only with the function below. Only those who decide about the project can read them. */
grant select, delete, update (denied_at) on hub.access_request to dex_hub_app;
create policy decides on hub.access_request to dex_hub_app
  using (tenant = ${TENANT} and ${MAY_GRANT.replace("GRANTED", "access_request.project")});
/** An admin may grant access to every project of a tenant, but not to themselves. */
create policy not_oneself on hub.project_grant as restrictive for insert to dex_hub_app
  with check (member <> ${MEMBER} or hub.level_in(project) = 'own' or not hub.is_taken(project));
create policy not_oneself_again on hub.project_grant as restrictive for update to dex_hub_app
  using (member <> ${MEMBER} or hub.level_in(project) = 'own' or not hub.is_taken(project));

/**
 * Sends the owners a request. Returns 'known' if there is one already, and 'too_many' if the member already has this many
 * requests that were not approved.
 */
create function hub.request_access(of_project int, most int) returns text language plpgsql security definer set search_path = '' as $$
begin
  if ${ROLE} not in ('member', 'admin') or not hub.is_taken(of_project) then return 'refused'; end if;
  -- Handles one request of a member at a time, so that all are counted.
  perform from hub.member where tenant = ${TENANT} and id = ${MEMBER} for no key update;
  delete from hub.access_request where tenant = ${TENANT} and member = ${MEMBER} and coalesce(denied_at, at) < now() - interval '30 days';
  if exists (select from hub.access_request where tenant = ${TENANT} and member = ${MEMBER} and project = of_project) then return 'known'; end if;
  if (select count(*) from hub.access_request where tenant = ${TENANT} and member = ${MEMBER}) >= most then return 'too_many'; end if;
  insert into hub.access_request (tenant, project, member) values (${TENANT}, of_project, ${MEMBER});
  return 'asked';
end $$;
/** Grants a project to the member if a rule of their tenant allows it. Returns the rule, or null. */
create function hub.join_by_rule(of_project int) returns text language plpgsql security definer set search_path = '' as $$
declare rule text; begin
  if ${ROLE} not in ('member', 'admin') then return null; end if;
  select r.pattern into rule from hub.project_rule r join hub.project p on p.tenant = r.tenant and p.id = of_project
    where r.tenant = ${TENANT} and starts_with(p.key, rtrim(r.pattern, '*')) order by r.pattern limit 1;
  if rule is null then return null; end if;
  insert into hub.project_grant as g (tenant, project, member, level) values (${TENANT}, of_project, ${MEMBER}, 'write')
    on conflict (tenant, project, member) do update set level = hub.higher_level('write', g.level),
      person_level = hub.higher_level('write', g.person_level);
  delete from hub.access_request where tenant = ${TENANT} and member = ${MEMBER} and project = of_project;
  return rule;
end $$;
revoke execute on function hub.request_access, hub.join_by_rule from public;
grant execute on function hub.request_access, hub.join_by_rule to dex_hub_app;
`,
  `
/**
 * Who wrote which line, derived from each conversation. Paths, file names, hashes and subjects of commits are hashes keyed with a
 * key of the tenant, by which a question finds its rows. Everything else is sealed with the conversation's key.
 */
create table hub.line_work (
  tenant int not null,
  conversation bigint not null,
  /** When the conversation was active. */
  activity bytea not null,
  primary key (tenant, conversation),
  foreign key (tenant, conversation) references hub.conversation on delete cascade
);
create table hub.line_file (
  tenant int not null,
  conversation bigint not null,
  path bytea not null,
  /** The last part of the path. */
  name bytea not null,
  edits bytea not null,
  foreign key (tenant, conversation) references hub.line_work on delete cascade
);
create index on hub.line_file (tenant, conversation);
create index on hub.line_file (tenant, path);
create index on hub.line_file (tenant, name);
create table hub.line_commit (
  tenant int not null,
  conversation bigint not null,
  hash bytea not null,
  subject bytea not null,
  made bytea not null,
  foreign key (tenant, conversation) references hub.line_work on delete cascade
);
create index on hub.line_commit (tenant, conversation);
create index on hub.line_commit (tenant, hash);
create index on hub.line_commit (tenant, subject);
alter table hub.line_work alter column activity set storage external;
alter table hub.line_file alter column edits set storage external;
alter table hub.conversation
  /** The revision from which the lines were derived, and the version of the code that did it. Null if there are none. */
  add column lines_rev bigint,
  add column lines_version int;

do $$ declare name text; begin
  foreach name in array array['hub.line_work', 'hub.line_file', 'hub.line_commit'] loop
    execute format('alter table %s enable row level security', name);
    execute format('alter table %s force row level security', name);
    execute format('create policy owner on %s to current_user using (true) with check (true)', name);
  end loop;
end $$;
grant select on hub.line_work, hub.line_file, hub.line_commit to dex_hub_app;
create policy of_readable on hub.line_work for select to dex_hub_app using (${IS_OF_READABLE.replaceAll("of.", "line_work.")});
create policy of_readable on hub.line_file for select to dex_hub_app using (${IS_OF_READABLE.replaceAll("of.", "line_file.")});
create policy of_readable on hub.line_commit for select to dex_hub_app using (${IS_OF_READABLE.replaceAll("of.", "line_commit.")});

/**
 * Replaces the lines of a conversation. They can be written in no other way. Returns false if the conversation was forgotten,
 * hidden or replaced since this revision was read. Without activity, only records that the conversation was read.
 */
create function hub.save_lines(of_conversation bigint, of_rev bigint, of_version int, of_activity bytea,
  paths bytea[], names bytea[], edits bytea[], hashes bytea[], subjects bytea[], made bytea[])
returns bool language plpgsql security definer set search_path = '' as $$
begin
  update hub.conversation set lines_rev = of_rev, lines_version = of_version
    where tenant = ${TENANT} and id = of_conversation and rev = of_rev and quarantined_at is null;
  if not found then return false; end if;
  delete from hub.line_work where tenant = ${TENANT} and conversation = of_conversation;
  if of_activity is null then return true; end if;
  insert into hub.line_work (tenant, conversation, activity) values (${TENANT}, of_conversation, of_activity);
  insert into hub.line_file (tenant, conversation, path, name, edits)
    select ${TENANT}, of_conversation, one.path, one.name, one.edits from unnest(paths, names, edits) as one (path, name, edits);
  insert into hub.line_commit (tenant, conversation, hash, subject, made)
    select ${TENANT}, of_conversation, one.hash, one.subject, one.made from unnest(hashes, subjects, made) as one (hash, subject, made);
  return true;
end $$;
revoke execute on function hub.save_lines from public;
grant execute on function hub.save_lines to dex_hub_index;

/** Like the previous version, but a conversation that is hidden loses its lines at once. */
create or replace function hub.mark_scanned(of_conversation bigint, of_rev bigint, version int, hashes bytea[], secret bytea[], rules text[])
returns bool language plpgsql security definer set search_path = '' as $$
declare next_seq bigint; begin
  perform from hub.conversation where tenant = ${TENANT} and id = of_conversation and rev = of_rev for update;
  if not found then return false; end if;
  update hub.chunk set scanned = version, found = case when hash = any (secret) then rules end
    where tenant = ${TENANT} and conversation = of_conversation and hash = any (hashes);
  update hub.conversation set scanned = version where tenant = ${TENANT} and id = of_conversation;
  if cardinality(rules) > 0 then
    update hub.conversation set quarantined_at = now(), quarantined_by = rules, lines_rev = null where tenant = ${TENANT} and id = of_conversation;
    delete from hub.line_work where tenant = ${TENANT} and conversation = of_conversation;
    update hub.feed set seq = seq + 1 where tenant = ${TENANT} returning seq into next_seq;
    insert into hub.change (tenant, seq, conversation, deleted) values (${TENANT}, next_seq, of_conversation, true);
  end if;
  return true;
end $$;
`,
  {
    alone: `create index concurrently if not exists conversation_without_lines on hub.conversation
      (tenant, (case when lines_rev = rev then lines_version else 0 end)) where rev > 0`,
  },
  `
/** The tenants whose words are in a cluster of OpenSearch, and not in files of the hubs. */
create table hub.word_index (
  tenant int primary key references hub.tenant on delete cascade,
  /** Who may write the index, and until when. The number of the lease increases each time that another process gets it. */
  holder uuid,
  lease bigint not null default 0,
  until timestamptz not null default '-infinity',
  /** The number of the newest change that searches find. Null if there is no complete index. */
  followed bigint,
  /** True until the first index is complete. Until then, the files of the hubs are kept and searched. */
  in_files bool not null default true
);
alter table hub.word_index enable row level security;
alter table hub.word_index force row level security;
create policy owner on hub.word_index to current_user using (true) with check (true);
grant select, update on hub.word_index to dex_hub_index;
create policy index on hub.word_index for select to dex_hub_index using (true);
create policy written on hub.word_index for update to dex_hub_index using (tenant = ${TENANT}) with check (tenant = ${TENANT});
`,
  `
/** The PostgreSQL that wrote the feed's number: its system identifier and timeline. */
alter table hub.feed add column written_by text;
/**
 * The ids that a tenant's history had before another PostgreSQL continued it after a restore or a fail-over, and the number up to
 * which the two agree. Who followed an earlier history further than this must begin again.
 */
create table hub.earlier_history (
  tenant int not null references hub.tenant on delete cascade,
  history uuid not null,
  until bigint not null,
  primary key (tenant, history)
);
alter table hub.earlier_history enable row level security;
alter table hub.earlier_history force row level security;
create policy owner on hub.earlier_history to current_user using (true) with check (true);
grant select on hub.earlier_history to dex_hub_app, dex_hub_index;
create policy member on hub.earlier_history for select to dex_hub_app using (tenant = ${TENANT});
create policy index on hub.earlier_history for select to dex_hub_index using (tenant = ${TENANT});

/** Gives the history a new id if this PostgreSQL is not the one that wrote the number before. */
create function hub.check_writer() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  new.written_by = (select system_identifier from pg_catalog.pg_control_system())
    || '.' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
  if tg_op = 'UPDATE' and old.written_by <> new.written_by then
    insert into hub.earlier_history (tenant, history, until) select id, history, old.seq from hub.tenant where id = new.tenant;
    update hub.tenant set history = gen_random_uuid() where id = new.tenant;
  end if;
  return new;
end $$;
create trigger check_writer before insert or update of seq on hub.feed for each row execute function hub.check_writer();
`,
  `
/**
 * The nodes of a cluster whose disks may have words of a tenant. Everything that was removed up to the number "clean" of the feed
 * is gone from a node's disk.
 */
create table hub.word_copy (
  tenant int not null references hub.tenant on delete cascade,
  node text not null,
  name text not null,
  clean bigint not null default 0,
  primary key (tenant, node)
);
alter table hub.word_copy enable row level security;
alter table hub.word_copy force row level security;
create policy owner on hub.word_copy to current_user using (true) with check (true);
grant select, insert, update, delete on hub.word_copy to dex_hub_index;
create policy index on hub.word_copy for select to dex_hub_index using (true);
create policy written on hub.word_copy to dex_hub_index using (tenant = ${TENANT}) with check (tenant = ${TENANT});
grant select on hub.word_copy to dex_hub_app;
create policy member on hub.word_copy for select to dex_hub_app using (tenant = ${TENANT});
alter table hub.receipt
  /** The number of the last removal in the feed. Null if nothing could be found. */
  add column seq bigint,
  /** When no node of a cluster had the words on its disk any more. */
  add column words_gone_at timestamptz;
grant select (tenant, seq, words_gone_at), update (words_gone_at) on hub.receipt to dex_hub_index;
create policy words on hub.receipt to dex_hub_index using (tenant = ${TENANT}) with check (tenant = ${TENANT});
/** True while the words go back to files. Until a hub has built its own, it searches the cluster. */
alter table hub.word_index add column leaving bool not null default false;
`,
  `
/** Operators of the hub. They belong to no tenant and can read no text. */
create table hub.operator (
  id int primary key generated always as identity,
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
  created_at timestamptz not null default now(),
  disabled_at timestamptz
);
create table hub.operator_token (
  hash bytea primary key,
  id bigint not null unique generated always as identity,
  operator int not null references hub.operator on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz
);
/** A code can be exchanged once, for a token of the operator with this name. */
create table hub.operator_code (
  hash bytea primary key,
  name text not null check (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz
);
/** The log of operators, also about tenants that no longer exist. */
create table hub.operator_audit (
  id bigint primary key generated always as identity,
  at timestamptz not null default now(),
  /** Null if it was done with the owner's address. */
  operator text,
  action text not null,
  tenant text,
  target text,
  detail jsonb not null default '{}'
);
do $$ declare name text; begin
  foreach name in array array['hub.operator', 'hub.operator_token', 'hub.operator_code', 'hub.operator_audit'] loop
    execute format('alter table %s enable row level security', name);
    execute format('alter table %s force row level security', name);
    execute format('create policy owner on %s to current_user using (true) with check (true)', name);
  end loop;
end $$;

/** Like the previous version. Another PostgreSQL counts transactions from elsewhere, so older lines lose theirs, and come first. */
create or replace function hub.check_writer() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  new.written_by = (select system_identifier from pg_catalog.pg_control_system())
    || '.' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
  if tg_op = 'UPDATE' and old.written_by <> new.written_by then
    insert into hub.earlier_history (tenant, history, until) select id, history, old.seq from hub.tenant where id = new.tenant;
    update hub.tenant set history = gen_random_uuid() where id = new.tenant;
    update hub.audit set xact = null where tenant = new.tenant and xact > pg_catalog.pg_current_xact_id();
  end if;
  return new;
end $$;
create function hub.note_operator() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into hub.operator_audit (operator, action, tenant, target, detail)
    values (new.operator, new.action, (select slug from hub.tenant where id = new.tenant), new.target, coalesce(new.detail, '{}'));
  return null;
end $$;

/** Begins a transaction on behalf of an operator. Returns false if they have left. */
create function hub.begin_as_operator(of_operator int) returns bool language plpgsql security definer set search_path = '' as $$
declare who hub.operator; begin
  select * into who from hub.operator where id = of_operator and disabled_at is null;
  if not found then return false; end if;
  perform pg_catalog.set_config('hub.operator', who.id::text, true), pg_catalog.set_config('hub.operator_name', who.name, true);
  return true;
end $$;
/** The operator who has this token; none if it is unknown, expired or revoked. */
create function hub.operator_with(token_hash bytea) returns table (id int, name text, token bigint) language plpgsql security definer set search_path = '' as $$
begin
  -- Written at most once a day, so that not every request costs a write.
  update hub.operator_token t set last_used_at = now() where t.hash = token_hash and (t.last_used_at is null or t.last_used_at < now() - interval '1 day');
  return query select o.id, o.name, t.id from hub.operator_token t join hub.operator o on o.id = t.operator
    where t.hash = token_hash and t.revoked_at is null and t.expires_at > now() and o.disabled_at is null;
end $$;
/** Exchanges a code for a token. Returns the operator's name; null if the code was used, has expired or is unknown. */
create function hub.redeem_operator_code(code_hash bytea, token_hash bytea, token_days int) returns text language plpgsql security definer set search_path = '' as $$
declare wanted text; who int; begin
  update hub.operator_code c set used_at = now() where c.hash = code_hash and c.used_at is null and c.expires_at > now() returning c.name into wanted;
  if wanted is null then return null; end if;
  insert into hub.operator as o (name) values (wanted) on conflict (name) do update set disabled_at = null returning o.id into who;
  insert into hub.operator_token (hash, operator, expires_at) values (token_hash, who, now() + make_interval(days => token_days));
  insert into hub.operator_audit (operator, action, target) values (wanted, 'login', wanted);
  return wanted;
end $$;
/** Adds a code for a new operator, or for one who lost their token. */
create function hub.add_operator_code(of_name text, code_hash bytea, valid_hours int) returns void language plpgsql security definer set search_path = '' as $$
begin
  insert into hub.operator_code (hash, name, expires_at) values (code_hash, of_name, now() + make_interval(hours => valid_hours));
  insert into hub.operator_audit (operator, action, target) values (nullif(current_setting('hub.operator_name', true), ''), 'operator_code', of_name);
end $$;
/** Ends an operator's access. Returns 'unknown', 'last' if nobody else could log in, or 'ended'. */
create function hub.end_operator(of_name text) returns text language plpgsql security definer set search_path = '' as $$
begin
  perform from hub.operator order by id for update;
  if not exists (select from hub.operator where name = of_name and disabled_at is null) then return 'unknown'; end if;
  if not exists (select from hub.operator o join hub.operator_token t on t.operator = o.id where o.name <> of_name and o.disabled_at is null
    and t.revoked_at is null and t.expires_at > now()) then return 'last'; end if;
  update hub.operator set disabled_at = now() where name = of_name;
  update hub.operator_token t set revoked_at = now() from hub.operator o where o.id = t.operator and o.name = of_name and t.revoked_at is null;
  update hub.operator_code set used_at = now() where name = of_name and used_at is null;
  insert into hub.operator_audit (operator, action, target) values (nullif(current_setting('hub.operator_name', true), ''), 'operator_end', of_name);
  return 'ended';
end $$;
revoke execute on function hub.begin_as_operator, hub.operator_with, hub.redeem_operator_code, hub.add_operator_code, hub.end_operator, hub.note_operator from public;
grant usage on schema hub to dex_hub_admin;
grant execute on function hub.begin_as_operator, hub.operator_with, hub.redeem_operator_code to dex_hub_admin;


/** An operator's jobs that need more than the rows that they may see. Each checks that an operator has begun the transaction. */
create function hub.require_operator() returns void language plpgsql stable set search_path = '' as $$
begin
  if ${OPERATOR} is null then raise exception 'only an operator may do this' using errcode = '42501'; end if;
end $$;
create function hub.add_tenant(of_slug text, of_wrapped_key bytea) returns int language plpgsql security definer set search_path = '' as $$
declare added int; begin
  perform hub.require_operator();
  insert into hub.tenant (slug, wrapped_key) values (of_slug, of_wrapped_key) on conflict do nothing returning id into added;
  if added is not null then insert into hub.feed (tenant) values (added); end if;
  return added;
end $$;
create function hub.operator_code(of_name text, code_hash bytea, valid_hours int) returns void language plpgsql security definer set search_path = '' as $$
begin
  perform hub.require_operator();
  perform hub.add_operator_code(of_name, code_hash, valid_hours);
end $$;
create function hub.operator_end(of_name text) returns text language plpgsql security definer set search_path = '' as $$
begin
  perform hub.require_operator();
  return hub.end_operator(of_name);
end $$;
/** How many members and conversations each tenant has, and how much it stores. */
create function hub.tenant_counts() returns table (tenant int, members int, admins int, conversations bigint, stored_bytes bigint)
language plpgsql stable security definer set search_path = '' as $$
begin
  perform hub.require_operator();
  return query select t.id, (select count(*)::int from hub.member m where m.tenant = t.id and m.disabled_at is null),
    (select count(*)::int from hub.member m where m.tenant = t.id and m.disabled_at is null and m.role = 'admin'),
    (select count(*) from hub.conversation c where c.tenant = t.id and c.rev > 0),
    (select coalesce(sum(c.stored_bytes), 0)::bigint from hub.conversation c where c.tenant = t.id and c.rev > 0) from hub.tenant t;
end $$;
/**
 * Invites an admin to a tenant that has none who could log in. Returns 'has_admin' if it has one, 'taken' if the name belongs to
 * somebody who is no admin, or 'invited'.
 */
create function hub.invite_admin(of_tenant int, of_name text, code_hash bytea, valid_days int) returns text language plpgsql security definer set search_path = '' as $$
declare who hub.member; begin
  perform hub.require_operator();
  perform from hub.tenant where id = of_tenant for no key update;
  if exists (select from hub.member m where m.tenant = of_tenant and m.role = 'admin' and m.disabled_at is null and (m.subject is not null
    or exists (select from hub.token k where k.tenant = m.tenant and k.member = m.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))))
    then return 'has_admin'; end if;
  select * into who from hub.member m where m.tenant = of_tenant and m.name = of_name;
  -- Somebody who has shared conversations is not given to whoever redeems the code.
  if who.id is not null and (who.role <> 'admin' or who.disabled_at is not null or exists (select from hub.conversation c where c.tenant = of_tenant and c.author = who.id))
    then return 'taken'; end if;
  if who.id is null then
    insert into hub.member (tenant, name, role) values (of_tenant, of_name, 'admin') returning * into who;
    insert into hub.audit (tenant, action, target, detail) values (of_tenant, 'member_add', of_name, '{"role": "admin"}');
  end if;
  insert into hub.invitation (hash, tenant, member, expires_at) values (code_hash, of_tenant, who.id, now() + make_interval(days => valid_days));
  insert into hub.audit (tenant, action, detail) values (of_tenant, 'invite', jsonb_build_object('about', of_name));
  return 'invited';
end $$;
/** Applies the rules for a group to the members who were in it at their last login. */
create function hub.apply_group(of_group text) returns void language plpgsql security definer set search_path = '' as $$
begin
  if ${ROLE} <> 'admin' then raise exception 'only an admin may do this' using errcode = '42501'; end if;
  perform hub.apply_groups(tenant, id) from hub.member where tenant = ${TENANT} and of_group = any (groups);
end $$;
revoke execute on function hub.require_operator, hub.add_tenant, hub.operator_code, hub.operator_end, hub.tenant_counts, hub.invite_admin, hub.apply_group from public;
grant execute on function hub.require_operator, hub.add_tenant, hub.operator_code, hub.operator_end, hub.tenant_counts, hub.invite_admin, hub.apply_group to dex_hub_admin;
grant select (id, name, created_at, disabled_at) on hub.operator to dex_hub_admin;
create policy operator on hub.operator for select to dex_hub_admin using (${OPERATOR} is not null);
grant select (operator, id, created_at, expires_at, last_used_at, revoked_at) on hub.operator_token to dex_hub_admin;
create policy operator on hub.operator_token for select to dex_hub_admin using (${OPERATOR} is not null);
grant select on hub.operator_audit to dex_hub_admin;
create policy operator on hub.operator_audit for select to dex_hub_admin using (${OPERATOR} is not null);
`,
  // dex_hub_admin: an operator sees tenants, an admin the members and rules of their tenant. Nobody sees text or keys of
  // conversations. One table in each step: with the locks of several, a step would deadlock with hubs that take them in another order.
  `
/** When the tenant is deleted. Null if it is not. */
alter table hub.tenant add column delete_at timestamptz;
grant select (id, slug, settings, created_at, delete_at), update (settings, delete_at) on hub.tenant to dex_hub_admin;
create policy operator on hub.tenant to dex_hub_admin using (${OPERATOR} is not null) with check (${OPERATOR} is not null);
create policy admin on hub.tenant for select to dex_hub_admin using (id = ${TENANT});
`,
  `
grant select, insert, delete on hub.identity_provider to dex_hub_admin;
create policy operator on hub.identity_provider to dex_hub_admin using (${OPERATOR} is not null) with check (${OPERATOR} is not null);
`,
  `
grant select, insert, update, delete on hub.word_index to dex_hub_admin;
create policy operator on hub.word_index to dex_hub_admin using (${OPERATOR} is not null) with check (${OPERATOR} is not null);
`,
  `
grant select, delete on hub.word_copy to dex_hub_admin;
create policy operator on hub.word_copy to dex_hub_admin using (${OPERATOR} is not null) with check (${OPERATOR} is not null);
`,
  `
grant select (tenant, seq) on hub.feed to dex_hub_admin;
create policy operator on hub.feed for select to dex_hub_admin using (${OPERATOR} is not null);
`,
  `
grant select, insert (tenant, name, role, email), update (role, role_by_group, email, disabled_at, quota_bytes) on hub.member to dex_hub_admin;
create policy seen on hub.member for select to dex_hub_admin using (tenant = ${TENANT} and ${ROLE} in ('admin', 'auditor'));
create policy added on hub.member for insert to dex_hub_admin with check (${IS_ADMIN});
create policy changed on hub.member for update to dex_hub_admin using (${IS_ADMIN}) with check (${IS_ADMIN});
`,
  `
grant select (id, tenant, member, kind, scopes, name, created_at, expires_at, last_used_at, revoked_at), insert, update (revoked_at) on hub.token to dex_hub_admin;
create policy seen on hub.token for select to dex_hub_admin using (${IS_ADMIN});
create policy ended on hub.token for update to dex_hub_admin using (${IS_ADMIN}) with check (${IS_ADMIN});
/** A person gets a code, and only they see their token. */
create policy service on hub.token for insert to dex_hub_admin with check (${IS_ADMIN} and scopes = '{read}'
  and exists (select from hub.member m where m.tenant = token.tenant and m.id = token.member and m.role = 'service' and m.disabled_at is null));
`,
  `
grant insert on hub.invitation to dex_hub_admin;
create policy person on hub.invitation for insert to dex_hub_admin with check (${IS_ADMIN} and exists (select from hub.member m
  where m.tenant = invitation.tenant and m.id = invitation.member and m.role <> 'service' and m.subject is null and m.disabled_at is null));
`,
  `
grant select, insert (tenant, key), update (retention_days) on hub.project to dex_hub_admin;
create policy admin on hub.project to dex_hub_admin using (${IS_ADMIN}) with check (${IS_ADMIN});
`,
  `
grant select, insert, update, delete on hub.project_grant to dex_hub_admin;
create policy administered on hub.project_grant to dex_hub_admin using (${IS_ADMIN}) with check (${IS_ADMIN});
/** An admin does not let themselves in. */
create policy not_admin_oneself on hub.project_grant as restrictive for insert to dex_hub_admin with check (member <> ${MEMBER});
create policy not_admin_oneself_again on hub.project_grant as restrictive for update to dex_hub_admin using (member <> ${MEMBER});
`,
  `
grant select, delete on hub.access_request to dex_hub_admin;
create policy admin on hub.access_request to dex_hub_admin using (${IS_ADMIN});
`,
  `
grant select, insert, update, delete on hub.project_rule to dex_hub_admin;
create policy admin on hub.project_rule to dex_hub_admin using (${IS_ADMIN}) with check (${IS_ADMIN});
`,
  `
grant select, insert, update, delete on hub.group_grant to dex_hub_admin;
create policy admin on hub.group_grant to dex_hub_admin using (${IS_ADMIN}) with check (${IS_ADMIN});
`,
  `
grant select, insert, update, delete on hub.group_role to dex_hub_admin;
create policy admin on hub.group_role to dex_hub_admin using (${IS_ADMIN}) with check (${IS_ADMIN});
`,
  `
grant select (tenant, id, at, member, by_member, conversations, why, key_gone_at, words_gone_at, seq) on hub.receipt to dex_hub_admin;
create policy admin on hub.receipt for select to dex_hub_admin using (${IS_ADMIN});
`,
  `
grant select on hub.break_glass to dex_hub_admin;
create policy seen on hub.break_glass for select to dex_hub_admin using (tenant = ${TENANT} and ${ROLE} in ('admin', 'auditor'));
`,
  `
alter table hub.audit
  /** The operator who acted, the token that was used, and the client's address. */
  add column operator text default nullif(current_setting('hub.operator_name', true), ''),
  add column token bigint default nullif(current_setting('hub.token_id', true), '')::bigint,
  add column address text default nullif(current_setting('hub.address', true), '');
/**
 * The transaction that wrote the line. Lines are numbered before they are committed, so who follows the log by their numbers alone
 * would miss those that are committed late.
 */
alter table hub.audit add column xact xid8;
alter table hub.audit alter column xact set default pg_current_xact_id();
create trigger note_operator after insert on hub.audit for each row when (new.operator is not null) execute function hub.note_operator();
grant select, insert (tenant, member, action, target, detail) on hub.audit to dex_hub_admin;
create policy followed on hub.audit for select to dex_hub_admin using (tenant = ${TENANT} and ${ROLE} in ('admin', 'auditor'));
create policy admin on hub.audit for insert to dex_hub_admin with check (${IS_ADMIN} and member = ${MEMBER} and operator is null);
create policy operator on hub.audit for insert to dex_hub_admin with check (${OPERATOR} is not null and member is null and operator is not null);
`,
  {
    alone:
      "create index concurrently if not exists audit_in_order on hub.audit (tenant, (coalesce(xact, '0'::xid8)), id)",
  },
  `
/** The owner of the other tables no longer has rights on this one, unless it is a superuser. The functions below need them. */
grant select, insert, update, delete on hub_key.conversation_key to current_user;

/** The conversations of the transaction's tenant that their projects no longer keep. */
create function hub.expired(most int) returns table (id bigint, author int, source text, native_id text) language sql stable security definer set search_path = '' as $$
  select c.id, c.author, c.source, c.native_id from hub.conversation c join hub.project p on p.tenant = c.tenant and p.id = c.project
  where c.tenant = ${TENANT} and ${IS_EXPIRED}
  order by c.author, c.id limit most $$;
/**
 * Forgets those of these conversations that have expired. The hashes are their names, by which they are not accepted again.
 * Returns how many were forgotten.
 */
create function hub.forget_expired(ids bigint[], hashes bytea[]) returns int language plpgsql security definer set search_path = '' as $$
declare due bigint[]; who record; one bigint; last_seq bigint; begin
  -- Waits for a commit in progress. Only then is it known whether the conversation has expired.
  perform from hub.conversation c where c.tenant = ${TENANT} and c.id = any (ids) order by c.id for update;
  select array_agg(c.id) into due from hub.conversation c join hub.project p on p.tenant = c.tenant and p.id = c.project
    where c.tenant = ${TENANT} and c.id = any (ids) and ${IS_EXPIRED};
  for who in select c.author, array_agg(c.id order by c.id) as ids,
      array_agg(m.name || '/' || c.source || ':' || c.native_id order by c.id) as refs
    from hub.conversation c join hub.member m on m.tenant = c.tenant and m.id = c.author
    where c.tenant = ${TENANT} and c.id = any (due) group by c.author
  loop
    delete from hub_key.conversation_key where tenant = ${TENANT} and conversation = any (who.ids);
    delete from hub.chunk where tenant = ${TENANT} and conversation = any (who.ids);
    delete from hub.conversation where tenant = ${TENANT} and id = any (who.ids);
    insert into hub.tombstone (tenant, hash, member) select ${TENANT}, named.hash, who.author
      from unnest(ids, hashes) as named (id, hash) where named.id = any (who.ids) on conflict do nothing;
    insert into hub.audit (tenant, action, detail) values (${TENANT}, 'retention', jsonb_build_object('conversations', to_jsonb(who.refs)));
    foreach one in array who.ids loop
      update hub.feed set seq = seq + 1 where tenant = ${TENANT} returning seq into last_seq;
      insert into hub.change (tenant, seq, conversation, deleted) values (${TENANT}, last_seq, one, true);
    end loop;
    insert into hub.receipt (tenant, member, conversations, why, seq) values (${TENANT}, who.author, cardinality(who.ids), 'retention', last_seq);
  end loop;
  return coalesce(cardinality(due), 0);
end $$;
/** Removes conversations of the transaction's tenant that were planned more than a week ago and never committed. */
create function hub.remove_abandoned() returns int language plpgsql security definer set search_path = '' as $$
declare due bigint[]; begin
  select array_agg(c.id) into due from (select id from hub.conversation where tenant = ${TENANT} and rev = 0
    and coalesce(planned_at, received_at) < now() - interval '7 days' limit 1000 for update skip locked) c;
  delete from hub_key.conversation_key where tenant = ${TENANT} and conversation = any (due);
  delete from hub.chunk where tenant = ${TENANT} and conversation = any (due);
  delete from hub.conversation where tenant = ${TENANT} and id = any (due);
  return coalesce(cardinality(due), 0);
end $$;
/** Conversations of the transaction's tenant with chunks that arrived after the last commit, more than a week ago. */
create function hub.with_left_over(after_id bigint, most int) returns table (id bigint, rev bigint, head bytea, wrapped bytea)
language sql stable security definer set search_path = '' as $$
  select c.id, c.rev, c.head, k.wrapped from hub.conversation c join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id
  where c.tenant = ${TENANT} and c.rev > 0 and c.id > after_id and coalesce(c.planned_at, c.received_at) < now() - interval '7 days'
    and exists (select from hub.chunk later where later.tenant = c.tenant and later.conversation = c.id and later.stored_at > c.received_at
      and later.stored_at < now() - interval '7 days')
  order by c.id limit most $$;
/** Removes the chunks that this revision does not name, a week after they arrived. */
create function hub.remove_left_over(of_conversation bigint, of_rev bigint, named bytea[]) returns int language plpgsql security definer set search_path = '' as $$
declare removed int; begin
  perform from hub.conversation where tenant = ${TENANT} and id = of_conversation and rev = of_rev
    and coalesce(planned_at, received_at) < now() - interval '7 days' for update;
  if not found then return 0; end if;
  delete from hub.chunk where tenant = ${TENANT} and conversation = of_conversation and hash <> all (named) and stored_at < now() - interval '7 days';
  get diagnostics removed = row_count;
  return removed;
end $$;

/** The record of a deleted tenant. It contains nothing of its content. */
create table hub.tenant_receipt (
  id bigint primary key generated always as identity,
  name text not null,
  at timestamptz not null default now(),
  members int not null,
  conversations bigint not null,
  /** When the last row was deleted. */
  rows_gone_at timestamptz,
  /** When the keys were removed from the files of PostgreSQL's tables. */
  key_gone_at timestamptz
);
alter table hub.tenant_receipt enable row level security;
alter table hub.tenant_receipt force row level security;
create policy owner on hub.tenant_receipt to current_user using (true) with check (true);
grant select on hub.tenant_receipt to dex_hub_admin;
create policy operator on hub.tenant_receipt for select to dex_hub_admin using (${OPERATOR} is not null);
grant select (id, key_gone_at), update (key_gone_at) on hub.tenant_receipt to dex_hub_keys;
create policy keys on hub.tenant_receipt to dex_hub_keys using (true) with check (true);
/**
 * Deletes a part of a tenant whose time has come: its keys first, after which nothing of it can be read, and then a limited number of rows.
 * Returns false if nothing is left to do, or while a cluster still has words of it.
 */
create function hub.delete_tenant_part(most int) returns bool language plpgsql security definer set search_path = '' as $$
declare one hub.tenant; part text; done int; begin
  select * into one from hub.tenant t where t.delete_at <= now() order by t.id limit 1 for update skip locked;
  if not found then return false; end if;
  if one.wrapped_key <> '' then
    insert into hub.tenant_receipt (name, members, conversations) select one.slug,
      (select count(*) from hub.member where tenant = one.id), (select count(*) from hub.conversation where tenant = one.id and rev > 0);
    insert into hub.operator_audit (action, tenant, target) values ('tenant_deleted', one.slug, one.slug);
    delete from hub_key.conversation_key where tenant = one.id;
    delete from hub.token where tenant = one.id;
    delete from hub.invitation where tenant = one.id;
    delete from hub.identity_provider where tenant = one.id;
    update hub.member set disabled_at = coalesce(disabled_at, now()) where tenant = one.id;
    delete from hub.word_index where tenant = one.id;
    update hub.tenant set wrapped_key = '' where id = one.id;
    return true;
  end if;
  foreach part in array array['hub.chunk', 'hub.conversation', 'hub.change', 'hub.audit', 'hub_key.conversation_key', 'hub.break_glass'] loop
    execute format('delete from %s where tenant = $1 and ctid = any (array(select ctid from %s where tenant = $1 limit $2))', part, part) using one.id, most;
    get diagnostics done = row_count;
    if done > 0 then return true; end if;
  end loop;
  if exists (select from hub.word_copy where tenant = one.id) then return false; end if;
  delete from hub.tenant where id = one.id;
  update hub.tenant_receipt r set rows_gone_at = now() where r.name = one.slug and r.rows_gone_at is null;
  return true;
end $$;
revoke execute on function hub.expired, hub.forget_expired, hub.remove_abandoned, hub.with_left_over, hub.remove_left_over, hub.delete_tenant_part from public;
grant execute on function hub.expired, hub.forget_expired, hub.remove_abandoned, hub.with_left_over, hub.remove_left_over, hub.delete_tenant_part to dex_hub_index;
`,
]
