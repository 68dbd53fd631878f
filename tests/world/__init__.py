"""What several rooms' tests share: a bank that counts, agents with a plan, and processes that can be killed."""
