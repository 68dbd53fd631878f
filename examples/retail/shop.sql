-- The shop's tables. Amounts are whole cents; lists that are only ever shown are JSON texts.
create table if not exists users (
    user_id text primary key,
    first_name text not null collate nocase,
    last_name text not null collate nocase,
    email text not null unique collate nocase,
    address text not null              -- JSON
);
create index if not exists users_by_name on users (last_name, first_name);

create table if not exists payment_methods (
    method_id text not null,
    user_id text not null references users,
    source text not null,              -- credit_card | gift_card | paypal
    brand text,
    last_four text,
    balance integer check (balance >= 0),  -- of a gift card
    primary key (user_id, method_id)
);

create table if not exists products (
    product_id text primary key,
    name text not null
);

create table if not exists variants (
    item_id text primary key,
    product_id text not null references products,
    options text not null,             -- JSON
    available integer not null,
    price integer not null
);
create index if not exists variants_by_product on variants (product_id);

create table if not exists orders (
    order_id text primary key,
    user_id text not null references users,
    status text not null,
    address text not null,             -- JSON
    fulfillments text not null,        -- JSON
    notes text not null default '{}'   -- JSON: what was asked of it, such as the reason of its cancellation
);
create index if not exists orders_by_user on orders (user_id);

create table if not exists order_items (
    order_id text not null references orders,
    position integer not null,
    item_id text not null,
    product_id text not null,
    name text not null,
    options text not null,             -- JSON
    price integer not null,
    primary key (order_id, position)
);

create table if not exists payments (
    order_id text not null references orders,
    position integer not null,
    kind text not null,                -- payment | refund
    amount integer not null,
    method_id text not null,
    primary key (order_id, position)
);

-- What was changed, once a key: whoever asks with the same key again gets the first answer.
create table if not exists changes (
    key text primary key,
    tool text not null,
    args text not null,                -- JSON
    result text not null               -- JSON
);

create table if not exists handovers (
    key text primary key,
    summary text not null
);
